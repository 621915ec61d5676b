"""Scenarios with frames that break the rules of HTTP/2 (RFC 9113, sections 3 to 6)."""

from __future__ import annotations

import struct
from collections.abc import Callable

from hpack import block
from http2 import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HAS_PRIORITY,
    HEADERS,
    PADDED,
    PING,
    PRIORITY,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    Session,
    Stream,
    frame,
    goaway,
    settings,
)
from scenarios import http2, http2_start


def before(name: str, make: Callable[[Stream], bytes]) -> None:
    """Adds a scenario with the right response, and with the frames that `make` makes before it."""

    @http2(name)
    def play(stream: Stream) -> None:
        stream.send(make(stream) + stream.right())


def within(name: str, make: Callable[[Stream], bytes]) -> None:
    """Adds a scenario with the right response, and with frames between its head and its body."""

    @http2(name)
    def play(stream: Stream) -> None:
        stream.send(stream.head() + make(stream) + stream.data(end=True))


def instead(name: str, make: Callable[[Stream], bytes]) -> None:
    """Adds a scenario whose whole response is what `make` makes."""

    @http2(name)
    def play(stream: Stream) -> None:
        stream.send(make(stream))


def u32(value: int) -> bytes:
    """A number as four bytes, the most significant byte first."""
    return struct.pack("!I", value)


# Section 4: frames.
within("frame-of-unknown-type", lambda s: s.frame(0xBB, 0xFF, b"odd") + frame(0xBB, 0xFF, 0, b"odd"))
within("frame-with-reserved-bit", lambda s: frame(PING, 0, 1 << 31, bytes(8)))
within("frame-with-unknown-flags", lambda s: frame(PING, 0xF0, 0, bytes(8)))
instead("frame-data-over-size", lambda s: s.head() + s.data(bytes(16_385), end=True))
instead("frame-data-of-16-megabytes", lambda s: s.head() + s.data(bytes((1 << 24) - 1), end=True))
instead("frame-head-over-size", lambda s: s.head((b"x-odd", b"a" * 17_000)) + s.data(end=True))
within("frame-unknown-over-size", lambda s: s.frame(0xBB, 0, bytes(100_000)))
within("frame-settings-over-size", lambda s: frame(SETTINGS, 0, 0, struct.pack("!HI", 0x99, 1) * 20_000))

# Section 6.1: DATA. Section 6.2: HEADERS.
instead("data-before-the-head", lambda s: s.data() + s.right())
instead("data-alone", lambda s: s.data(end=True))
within("data-on-stream-0", lambda s: frame(DATA, 0, 0, b"forged"))
within("data-on-an-idle-stream", lambda s: frame(DATA, END_STREAM, s.id + 100, b"forged"))
within("data-on-an-even-stream", lambda s: frame(DATA, END_STREAM, 2, b"forged"))
instead("data-behind-the-end", lambda s: s.right() + s.data(b"forged", end=True))
instead("data-padding-too-long", lambda s: s.head() + s.frame(DATA, END_STREAM | PADDED, b"\xff" + s.body))
instead("data-padding-of-all", lambda s: s.head() + s.frame(DATA, END_STREAM | PADDED, b"\x04" + bytes(3)))
instead("data-padding-without-length", lambda s: s.head() + s.frame(DATA, END_STREAM | PADDED))
instead(
    "data-padding-right", lambda s: s.head() + s.frame(DATA, END_STREAM | PADDED, b"\xff" + s.body + bytes(255))
)
instead(
    "head-padding-too-long",
    lambda s: s.frame(HEADERS, END_HEADERS | PADDED, b"\xff" + block(*s.fields)) + s.data(end=True),
)
instead(
    "head-priority-cut", lambda s: s.frame(HEADERS, END_HEADERS | HAS_PRIORITY, b"\0\0") + s.data(end=True)
)
instead(
    "head-depends-on-itself",
    lambda s: s.frame(HEADERS, END_HEADERS | HAS_PRIORITY, u32(s.id) + b"\x10" + block(*s.fields)) + s.data(end=True),
)
before("head-on-stream-0", lambda s: frame(HEADERS, END_HEADERS, 0, block(*s.fields)))
before("head-on-an-even-stream", lambda s: frame(HEADERS, END_HEADERS | END_STREAM, 2, block(*s.fields)))
before("head-on-an-idle-stream", lambda s: frame(HEADERS, END_HEADERS | END_STREAM, s.id + 100, block(*s.fields)))
instead("head-behind-the-end", lambda s: s.right() + s.head(end=True))
instead("head-then-data-before-its-end", lambda s: s.frame(HEADERS, 0, block(*s.fields)) + s.data(end=True))
instead(
    "head-then-ping-before-its-end",
    lambda s: s.frame(HEADERS, 0, block(*s.fields))
    + frame(PING, 0, 0, bytes(8))
    + s.frame(CONTINUATION, END_HEADERS)
    + s.data(end=True),
)
before("continuation-of-nothing", lambda s: s.frame(CONTINUATION, END_HEADERS, block(*s.fields)))
instead(
    "continuation-of-another-stream",
    lambda s: s.frame(HEADERS, 0, block(*s.fields)) + frame(CONTINUATION, END_HEADERS, s.id + 2) + s.data(end=True),
)
within("continuation-behind-the-end", lambda s: s.frame(CONTINUATION, END_HEADERS, block((b"x-odd", b"one"))))

# Sections 6.3 to 6.5: PRIORITY, RST_STREAM, SETTINGS.
within("priority-too-short", lambda s: s.frame(PRIORITY, 0, bytes(4)))
within("priority-on-stream-0", lambda s: frame(PRIORITY, 0, 0, bytes(5)))
within("rst-too-short", lambda s: s.frame(RST_STREAM, 0, bytes(3)))
within("rst-on-stream-0", lambda s: frame(RST_STREAM, 0, 0, u32(8)))
within("rst-on-an-idle-stream", lambda s: frame(RST_STREAM, 0, s.id + 100, u32(8)))
within("settings-on-a-stream", lambda s: s.frame(SETTINGS, 0))
within("settings-of-5-bytes", lambda s: frame(SETTINGS, 0, 0, bytes(5)))
within("settings-ack-with-payload", lambda s: frame(SETTINGS, ACK, 0, struct.pack("!HI", 3, 100)))
within("settings-ack-unasked", lambda s: frame(SETTINGS, ACK, 0) * 3)
within("settings-enable-push-2", lambda s: settings((2, 2)))
within("settings-enable-push-1", lambda s: settings((2, 1)))
within("settings-window-over-2-to-the-31", lambda s: settings((4, 1 << 31)))
within("settings-frame-size-too-small", lambda s: settings((5, 16_383)))
within("settings-frame-size-too-large", lambda s: settings((5, 1 << 24)))
within("settings-unknown", lambda s: settings((0x99, 0xFFFFFFFF), (0, 1)))
within("settings-table-size-huge", lambda s: settings((1, 0xFFFFFFFF)))
within("settings-table-size-zero", lambda s: settings((1, 0)))
within("settings-head-size-zero", lambda s: settings((6, 0)))
within("settings-no-streams", lambda s: settings((3, 0)))
within("settings-one-stream", lambda s: settings((3, 1)))
within("settings-window-zero", lambda s: settings((4, 0)))
within("settings-window-overflows", lambda s: s.frame(WINDOW_UPDATE, 0, u32(0x7FFF0000)) + settings((4, 0x7FFFFFFF)))

# Sections 6.6 to 6.9: PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE.
# The request that a server announces with PUSH_PROMISE.
PROMISED = block((b":method", b"GET"), (b":scheme", b"https"), (b":authority", b"a.test"), (b":path", b"/"))
within("push-unasked", lambda s: s.frame(PUSH_PROMISE, END_HEADERS, u32(2) + PROMISED))
within(
    "push-and-its-answer",
    lambda s: s.frame(PUSH_PROMISE, END_HEADERS, u32(2) + PROMISED)
    + frame(HEADERS, END_HEADERS, 2, block(*s.fields))
    + frame(DATA, END_STREAM, 2, b"forged"),
)
within("push-of-an-odd-stream", lambda s: s.frame(PUSH_PROMISE, END_HEADERS, u32(s.id + 2) + PROMISED))
within("push-on-stream-0", lambda s: frame(PUSH_PROMISE, END_HEADERS, 0, u32(2) + PROMISED))
within("ping-of-7-bytes", lambda s: frame(PING, 0, 0, bytes(7)))
within("ping-on-a-stream", lambda s: s.frame(PING, 0, bytes(8)))
within("ping-ack-unasked", lambda s: frame(PING, ACK, 0, bytes(8)) * 3)
within("goaway-on-a-stream", lambda s: s.frame(GOAWAY, 0, bytes(8)))
within("goaway-of-7-bytes", lambda s: frame(GOAWAY, 0, 0, bytes(7)))
within("window-update-of-3-bytes", lambda s: s.frame(WINDOW_UPDATE, 0, bytes(3)))
within("window-update-of-zero", lambda s: s.frame(WINDOW_UPDATE, 0, u32(0)))
within("window-update-of-zero-on-stream-0", lambda s: frame(WINDOW_UPDATE, 0, 0, u32(0)))
within("window-update-over-2-to-the-31", lambda s: s.frame(WINDOW_UPDATE, 0, u32(0x7FFFFFFF)) * 2)
within("window-update-over-2-to-the-31-in-all", lambda s: frame(WINDOW_UPDATE, 0, 0, u32(0x7FFFFFFF)) * 2)
within("window-update-on-an-idle-stream", lambda s: frame(WINDOW_UPDATE, 0, s.id + 100, u32(1)))
instead("window-update-behind-the-end", lambda s: s.right() + s.frame(WINDOW_UPDATE, 0, u32(1)))
instead("rst-behind-the-end", lambda s: s.right() + s.reset(0))
within("text-of-http1", lambda s: b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
instead("text-of-http1-alone", lambda s: b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged")
within("frames-of-zeros", lambda s: bytes(9 * 20))
instead("frames-of-noise", lambda s: bytes((number * 167 + 13) % 256 for number in range(1000)))


@http2("frames-in-pieces-of-a-byte")
def pieces(stream: Stream) -> None:
    for byte in stream.right():
        stream.send(bytes([byte]))


@http2("answer-before-the-next-question")
def answer_before(stream: Stream) -> None:
    """Sends a forged response while no stream is open, on the stream that the client will open next."""
    forged = block((b":status", b"200"), (b"cache-control", b"max-age=3600"), (b"x-answer", b"0"))
    number = stream.id + 2
    answer = frame(HEADERS, END_HEADERS, number, forged) + frame(DATA, END_STREAM, number, b"forged answer")
    stream.send_right_then_late(answer)


def late(name: str, make: Callable[[Stream], bytes]) -> None:
    """Adds a scenario with the right response, and with frames that come while the connection is idle."""

    @http2(name)
    def play(stream: Stream) -> None:
        stream.send_right_then_late(make(stream))


late("ping-late", lambda s: frame(PING, 0, 0, bytes(8)))
late("settings-late", lambda s: settings((3, 50)))
late("goaway-late", lambda s: goaway(s.id, 0))
late("goaway-with-error-late", lambda s: goaway(s.id, 1))
late("no-streams-late", lambda s: settings((3, 0)))
late("data-late", lambda s: s.data(b"forged", end=True))
late("rst-late", lambda s: s.reset(8))
late("garbage-late", lambda s: b"garbage\r\n" * 100)
late("half-a-frame-late", lambda s: frame(PING, 0, 0, bytes(8))[:12])


def start(name: str, make: bytes) -> None:
    """Adds a scenario whose first connection begins with these bytes instead of the server's preface."""

    @http2_start(name)
    def play(session: Session) -> None:
        session.send(make)


start("preface-missing", b"")
start("preface-is-a-ping", frame(PING, 0, 0, bytes(8)) + settings())
start("preface-is-a-head", frame(HEADERS, END_HEADERS | END_STREAM, 1, block((b":status", b"200"))) + settings())
start("preface-is-an-ack", frame(SETTINGS, ACK, 0) + settings())
start("preface-is-text", b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
start("preface-is-the-client-s", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings())
start("preface-is-unknown-frame", frame(0xBB, 0, 0, b"odd") + settings())
start("preface-is-goaway", settings() + goaway(0, 0))
start("preface-is-goaway-with-error", settings() + goaway(0, 0xB))
start("preface-frame-size-bad", settings((5, 1)))
start("preface-window-bad", settings((4, 1 << 31)))
start("preface-no-streams", settings((3, 0)))
start("preface-one-stream", settings((3, 1)))
start("preface-window-zero", settings((4, 0)))
