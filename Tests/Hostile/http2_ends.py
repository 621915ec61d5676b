"""HTTP/2 responses that end too early or in a wrong way (RFC 9113, sections 5.4 and 8.1)."""

from __future__ import annotations

import time
from collections.abc import Callable

import hpack
import http1_codings
from http2 import Stream, frame, goaway, settings
from scenarios import http2

# Error codes: all that RFC 9113 defines, and two that it does not define.
CODES = [*range(14), 0xFF, 0xFFFFFFFF]


def reset(name: str, code: int, when: str) -> None:
    """Adds two scenarios whose response ends with RST_STREAM.

    In one, all frames come in one TLS record. In the other, each frame comes in its own record. `when` names
    the frames before the reset.
    """

    def frames(stream: Stream) -> list[bytes]:
        # A Content-Length of 5 bytes more than the body has.
        count = b"%d" % (len(stream.body) + 5)
        first = {
            "before-the-head": [],
            "in-the-body": [stream.head(), stream.data()],
            "in-a-body-with-length": [stream.head((b"content-length", count)), stream.data()],
            "behind-the-head": [stream.head()],
        }[when]
        return [*first, stream.reset(code)]

    @http2(name)
    def play(stream: Stream) -> None:
        stream.send(b"".join(frames(stream)))

    @http2(name + "-by-records")
    def play_by_records(stream: Stream) -> None:
        """The client can process the earlier frames before it reads the reset."""
        for piece in frames(stream):
            stream.send(piece)


for each_code in CODES:
    reset(f"rst-{each_code:x}-in-the-body", each_code, "in-the-body")
for each_code in (0, 1, 2, 7, 8, 0xB, 0xD):
    reset(f"rst-{each_code:x}-before-the-head", each_code, "before-the-head")
    reset(f"rst-{each_code:x}-behind-the-head", each_code, "behind-the-head")
    reset(f"rst-{each_code:x}-in-a-body-with-length", each_code, "in-a-body-with-length")


def early(name: str, make: Callable[[Stream], list[bytes]]) -> None:
    """Adds two scenarios whose response begins when the head of the request has arrived.

    After the response, RST_STREAM with NO_ERROR tells the client not to send the rest of the request's body
    (section 8.1). In one scenario, all frames come in one TLS record. In the other, each frame comes in its
    own record.
    """

    @http2("early-" + name, is_early=True)
    def play(stream: Stream) -> None:
        stream.send(b"".join(make(stream)) + stream.reset(0))

    @http2(f"early-{name}-by-records", is_early=True)
    def play_by_records(stream: Stream) -> None:
        for piece in [*make(stream), stream.reset(0)]:
            stream.send(piece)


early("whole", lambda s: [s.head(), s.data(end=True)])
early("whole-by-an-empty-frame", lambda s: [s.head(), s.data(), s.data(b"", end=True)])
early("whole-by-trailers", lambda s: [s.head(), s.data(), s.headers(hpack.block((b"x-end", b"1")), end=True)])
early("cut", lambda s: [s.head(), s.data()])
early("cut-behind-the-head", lambda s: [s.head()])


def end(name: str, how: str, when: str) -> None:
    """Adds a scenario whose connection ends, or falls silent, while the stream is open.

    `how` says how the connection ends. `when` says what part of the response comes before.
    """

    @http2(name)
    def play(stream: Stream) -> None:
        # A Content-Length of 5 bytes more than the body has.
        count = b"%d" % (len(stream.body) + 5)
        first = {
            "before-the-head": b"",
            "in-a-head": stream.head()[:20],
            "behind-the-head": stream.head(),
            "in-the-body": stream.head() + stream.data(),
            "in-a-frame": stream.head() + stream.data()[:-3],
            "in-the-head-of-a-frame": stream.head() + stream.data() + b"\0\0",
            "in-a-body-with-length": stream.head((b"content-length", count)) + stream.data(),
        }[when]
        connection = stream.session.connection
        if first:
            stream.send(first)
        if how == "close":
            connection.close()
        elif how == "fin":
            connection.cut()
        elif how == "reset":
            connection.reset()
        elif how == "alert":
            connection.send_raw(connection.sealed_alert())  # type: ignore[attr-defined]
            connection.cut()


for each_when in (
    "before-the-head",
    "in-a-head",
    "behind-the-head",
    "in-the-body",
    "in-a-frame",
    "in-the-head-of-a-frame",
    "in-a-body-with-length",
):
    for each_how in ("close", "fin", "reset", "alert", "silence"):
        end(f"{each_how}-{each_when}", each_how, each_when)


def away(name: str, last: int | None, code: int, then: str, *, first: bool = True) -> None:
    """Adds a scenario with a GOAWAY: behind the head of the response if `first`, otherwise before the head.

    `last` is the number in GOAWAY of the last stream that the server may have processed. `None` stands for
    the stream of the request. `then` says what follows: the "rest" of the response, or the end of the
    connection ("close").
    """

    @http2(name)
    def play(stream: Stream) -> None:
        head = stream.head() + stream.data(b"") if first else b""
        stream.send(head + goaway(stream.id if last is None else last, code, b"odd"))
        if then == "rest":
            stream.send(stream.data(end=True) if first else stream.right())
        elif then == "close":
            stream.close()


away("goaway-then-the-rest", None, 0, "rest")
away("goaway-then-the-end", None, 0, "close")
away("goaway-with-error-then-the-rest", None, 2, "rest")
away("goaway-with-error-then-the-end", None, 2, "close")
away("goaway-that-leaves-the-stream-out", 0, 0, "close")
away("goaway-that-leaves-the-stream-out-then-the-rest", 0, 0, "rest")
away("goaway-before-the-head-then-the-answer", None, 0, "rest", first=False)
away("goaway-before-the-head-then-the-end", None, 0, "close", first=False)
away("goaway-before-the-head-that-leaves-it-out", 0, 0, "close", first=False)
away("goaway-before-the-head-with-error", 0, 1, "close", first=False)
away("goaway-of-a-huge-stream-then-the-rest", 0x7FFFFFFF, 0, "rest")
away("goaway-enhance-your-calm", 0, 0xB, "close", first=False)


@http2("goaway-that-grows")
def goaway_grows(stream: Stream) -> None:
    """Sends two GOAWAYs. The second one names a higher stream than the first, which section 6.8 forbids."""
    stream.send(goaway(0, 0) + goaway(stream.id, 0) + stream.right())


@http2("goaway-in-two-steps")
def goaway_in_steps(stream: Stream) -> None:
    """Ends the connection gracefully, as section 6.8 describes.

    The first GOAWAY names the highest possible stream. The second one names the stream of the request.
    """
    stream.send(stream.head() + goaway(0x7FFFFFFF, 0))
    stream.send(goaway(stream.id, 0) + stream.data(end=True))
    stream.close()


@http2("script")
def script(stream: Stream) -> None:
    """Sends the bytes that the test has set for this host with /script, and closes the connection."""
    stream.send(stream.session.host.script)
    stream.close()


@http2("whole-then-fin")
def whole_then_fin(stream: Stream) -> None:
    stream.send(stream.right())
    stream.session.connection.cut()


@http2("whole-then-rst-no-error")
def whole_then_rst(stream: Stream) -> None:
    """The reset tells the client to stop sending; the response is whole (section 8.1)."""
    stream.send(stream.right() + stream.reset(0))


@http2("end-by-an-empty-frame")
def end_by_empty_frame(stream: Stream) -> None:
    stream.send(stream.head() + stream.data() + stream.data(b"", end=True))


@http2("silence-with-pings")
def pings(stream: Stream) -> None:
    """Sends a head, and then for half a second only PING and SETTINGS frames. The body never comes."""
    stream.send(stream.head())
    for _ in range(50):
        stream.send(frame(6, 0, 0, bytes(8)) + settings())
        time.sleep(0.01)


def coded(name: str, coding: str, cut: int) -> None:
    """Adds a scenario whose body has a content coding and lacks the last `cut` bytes of its coded form.

    The stream nevertheless ends regularly, with END_STREAM.
    """

    @http2(name)
    def play(stream: Stream) -> None:
        data = http1_codings.CODERS[coding](http1_codings.content(stream.body))
        stream.send(stream.head((b"content-encoding", coding.encode())))
        stream.send(stream.data(data[: len(data) - cut], end=True))


for each_coding in http1_codings.CODERS:
    coded(f"{each_coding}-whole", each_coding, 0)
    coded(f"{each_coding}-cut-at-the-last-byte", each_coding, 1)
    coded(f"{each_coding}-cut", each_coding, 30)
coded("gzip-cut-before-crc", "gzip", 8)
