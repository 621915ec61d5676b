"""Endless HTTP/2 frames, which cost the client more than the server (RFC 9113, section 10.5)."""

from __future__ import annotations

import struct
from collections.abc import Callable

from hpack import block, indexed_literal, integer, literal
from http2 import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PADDED,
    PING,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    Stream,
    frame,
    settings,
)
from scenarios import http2

# Makes frames of the response on a stream.
Piece = Callable[[Stream], bytes]


def flood(name: str, piece: Piece, *, first: Piece = lambda stream: b"") -> None:
    """Adds two scenarios: one with endless frames, and one with 100,000 frames before the right response.

    `piece` makes one of these frames. `first` makes what the endless frames follow; without it, that is a
    SETTINGS frame.
    """

    @http2(f"flood-of-{name}")
    def endless(stream: Stream) -> None:
        stream.flood(piece(stream), first=first(stream) or settings())

    @http2(f"many-{name}-then-the-answer")
    def many(stream: Stream) -> None:
        stream.send(piece(stream) * 100_000 + stream.right())


def u32(value: int) -> bytes:
    """A number as four bytes, the most significant byte first."""
    return struct.pack("!I", value)


flood("pings", lambda s: frame(PING, 0, 0, b"12345678"))
flood("ping-acks", lambda s: frame(PING, ACK, 0, b"12345678"))
flood("settings", lambda s: settings((3, 100)))
flood("empty-settings", lambda s: settings())
flood("settings-acks", lambda s: frame(SETTINGS, ACK, 0))
flood("window-updates", lambda s: frame(WINDOW_UPDATE, 0, 0, u32(1)))
flood("stream-window-updates", lambda s: s.frame(WINDOW_UPDATE, 0, u32(1)))
flood("priorities", lambda s: frame(PRIORITY, 0, s.id + 2, u32(0) + b"\x10"))
flood("priorities-of-the-stream", lambda s: s.frame(PRIORITY, 0, u32(0) + b"\x10"))
flood("unknown-frames", lambda s: frame(0xBB, 0, 0, b"odd"))
flood("resets-of-idle-streams", lambda s: frame(RST_STREAM, 0, s.id + 2, u32(8)))
flood("goaways", lambda s: frame(7, 0, 0, u32(0x7FFFFFFF) + u32(0)))


def endless(name: str, first: Piece, piece: Piece) -> None:
    """Adds a scenario whose response is what `first` makes, and then what `piece` makes, without end."""

    @http2(f"flood-of-{name}")
    def play(stream: Stream) -> None:
        stream.flood(piece(stream), first=first(stream))


def begun(stream: Stream) -> bytes:
    """A head that has begun: a HEADERS frame without END_HEADERS."""
    return stream.frame(HEADERS, 0, block(*stream.fields))


endless("continuations", begun, lambda s: s.frame(CONTINUATION, 0, literal(b"x-odd", b"one")))
endless("large-continuations", begun, lambda s: s.frame(CONTINUATION, 0, literal(b"x-odd", b"a" * 16_000)))
endless("empty-continuations", begun, lambda s: s.frame(CONTINUATION, 0))
endless("continuations-of-table-sizes", lambda s: s.frame(HEADERS, 0), lambda s: s.frame(CONTINUATION, 0, b"\x20"))
endless(
    "continuations-of-indexed-fields",
    lambda s: s.frame(HEADERS, 0, block(*s.fields) + indexed_literal(b"x-odd", b"a" * 3_900)),
    lambda s: s.frame(CONTINUATION, 0, integer(62, 7, 0x80) * 1_000),
)
endless("empty-data", lambda s: s.head(), lambda s: s.data(b""))
endless("padded-data", lambda s: s.head(), lambda s: s.frame(DATA, PADDED, b"\xff" + bytes(255)))
endless("data-of-a-byte", lambda s: s.head(), lambda s: s.data(b"a"))
endless("data", lambda s: s.head(), lambda s: s.data(bytes(16_384)))
endless("hints", lambda s: settings(), lambda s: s.headers(block((b":status", b"103"), (b"link", b"</a>"))))
endless(
    "trailers",
    lambda s: s.head() + s.data() + s.frame(HEADERS, END_STREAM),
    lambda s: s.frame(CONTINUATION, 0, literal(b"x-a", b"b")),
)
endless("answers", lambda s: s.right(), lambda s: s.head() + s.data(end=True))
endless("resets-of-the-stream", lambda s: s.right(), lambda s: s.reset(8))
endless("data-on-the-closed-stream", lambda s: s.right(), lambda s: s.data(b"a" * 1000))
endless("heads-on-even-streams", lambda s: settings(), lambda s: frame(HEADERS, END_HEADERS, 2, block(*s.fields)))


@http2("many-empty-data-then-the-answer")
def many_empty_data(stream: Stream) -> None:
    stream.send(stream.head() + stream.data(b"") * 100_000 + stream.data(end=True))


@http2("many-hints-then-the-answer")
def many_hints(stream: Stream) -> None:
    early = stream.headers(block((b":status", b"103"), (b"link", b"</a>")))
    stream.send(early * 50_000 + stream.right())


@http2("answer-in-data-of-a-byte")
def data_of_a_byte(stream: Stream) -> None:
    pieces = [stream.data(stream.body[at : at + 1]) for at in range(len(stream.body))]
    stream.send(stream.head() + b"".join(pieces) + stream.data(b"", end=True))


@http2("data-beyond-the-window")
def beyond_the_window(stream: Stream) -> None:
    """Sends more of a body than the client's flow-control window allows."""
    stream.flood(stream.data(bytes(16_384)), first=stream.head())
