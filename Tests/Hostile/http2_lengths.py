"""Scenarios with HTTP/2 responses whose body differs from their Content-Length (RFC 9113, section 8.1.1)."""

from __future__ import annotations

import time
from collections.abc import Callable

from hpack import block
from http2 import Stream, goaway, settings
from scenarios import http2


def length(name: str, *values: bytes, status: bytes = b"200", body: bool = True, end: bool = False) -> None:
    """Adds a scenario whose response has these Content-Lengths. `#` stands for the right length.

    `body`: whether a DATA frame with the right body follows the head. `end`: whether the stream ends with the
    head.
    """

    @http2(name)
    def play(stream: Stream) -> None:
        count = b"%d" % len(stream.body)
        lines = [(b"content-length", value.replace(b"#", count)) for value in values]
        head = block((b":status", status), *stream.fields[1:], *lines)
        stream.send(stream.headers(head, end=end) + (stream.data(end=True) if body else b""))


length("length-right", b"#")
length("length-too-long", b"1#")
length("length-too-short", b"1")
length("length-zero-with-body", b"0")
length("length-without-body", b"#", body=False, end=True)
length("length-two-different", b"#", b"1#")
length("length-two-equal", b"#", b"#")
length("length-list", b"#, #")
length("length-negative", b"-1")
length("length-plus", b"+#")
length("length-1e30", b"1" + b"0" * 30)
length("length-letters", b"#abc")
length("length-empty", b"")
length("no-content-with-data", status=b"204")
length("not-modified-with-data", status=b"304")
length("no-content-with-length", b"#", status=b"204", body=False, end=True)
# The test sends a HEAD request to this scenario, so no body may follow the head.
length("head-with-data", b"#")


def counted(
    name: str, rest: Callable[[Stream], bytes], then: Callable[[Stream], None] = lambda _: None, *, missing: int = 0
) -> None:
    """Adds three scenarios: a head with a Content-Length, the right body, and then what `rest` makes.

    The Content-Length is `missing` bytes more than the length of the right body. `then` runs after all frames
    are sent. In the first scenario, all frames come in one TLS record. In the second one, the head, the body
    and the rest come in records of their own. In the third one, the rest comes 50 ms after the others.
    """

    def frames(stream: Stream) -> list[bytes]:
        count = b"%d" % (len(stream.body) + missing)
        return [stream.head((b"content-length", count)), stream.data(), rest(stream)]

    @http2("counted-" + name)
    def play(stream: Stream) -> None:
        stream.send(b"".join(frames(stream)))
        then(stream)

    @http2(f"counted-{name}-by-records")
    def play_by_records(stream: Stream) -> None:
        for piece in frames(stream):
            stream.send(piece)
        then(stream)

    @http2(f"counted-{name}-later")
    def play_later(stream: Stream) -> None:
        """Pauses before the rest. A client that only counts bytes then takes the response for complete."""
        head, data, last = frames(stream)
        stream.send(head + data)
        time.sleep(0.05)
        stream.send(last)
        then(stream)


counted("then-the-end", lambda s: s.data(b"", end=True))
counted("then-a-padded-end", lambda s: s.frame(0, 0x9, b"\3\0\0\0"))
counted("then-trailers", lambda s: s.headers(block((b"x-trailer", b"one")), end=True))
counted("then-empty-data-and-the-end", lambda s: s.data(b"") * 3 + s.data(b"", end=True))
counted("then-goaway-and-the-end", lambda s: goaway(s.id, 0) + s.data(b"", end=True))
counted("then-more-and-the-end", lambda s: s.data(b"forged", end=True))
counted("then-more", lambda s: s.data(b"forged"))
counted("then-more-and-trailers", lambda s: s.data(b"f") + s.headers(block((b"x-trailer", b"one")), end=True))
counted("then-open-trailers", lambda s: s.headers(block((b"x-trailer", b"one"))))
for each_code in (0, 1, 2, 8, 0xB):
    counted(f"then-rst-{each_code:x}", lambda s, code=each_code: s.reset(code))  # type: ignore[misc]
counted("then-goaway-without-it", lambda _: goaway(0, 0), Stream.close)
counted("then-close", lambda _: b"", Stream.close)
counted("then-fin", lambda _: b"", lambda s: s.session.connection.cut())
counted("then-tcp-reset", lambda _: b"", lambda s: s.session.connection.reset())
counted("then-silence", lambda _: b"")


# Frames that end a stream after the right body, when the Content-Length announces 5 bytes more than that.
END = {
    "end": lambda s: s.data(b"", end=True),
    "trailers": lambda s: s.headers(block((b"x-trailer", b"one")), end=True),
    "some": lambda s: s.data(b"1234", end=True),
}
for each_name, each_end in END.items():
    short = "short-" + each_name
    counted(short, each_end, missing=5)
    counted(short + "-rst", lambda s, end=each_end: end(s) + s.reset(0), missing=5)  # type: ignore[misc]
    counted(short + "-data", lambda s, end=each_end: end(s) + s.data(b"1"), missing=5)  # type: ignore[misc]
    counted(short + "-bad", lambda s, end=each_end: end(s) + settings((2, 2)), missing=5)  # type: ignore[misc]
    counted(short + "-away", lambda s, end=each_end: end(s) + goaway(0, 0), Stream.close, missing=5)  # type: ignore[misc]
    counted(short + "-close", each_end, Stream.close, missing=5)


@http2("counted-short-and-large-then-close")
def short_and_large(stream: Stream) -> None:
    """Sends 48,000 of 60,000 announced bytes, and closes the connection while the client still reads."""
    stream.send(stream.head((b"content-length", b"60000")))
    for _ in range(30):
        stream.send(stream.data(stream.body.ljust(1600)))
    time.sleep(0.03)
    stream.send(stream.data(b"", end=True))
    stream.close()


@http2("counted-then-more-in-many-records")
def more_in_many_records(stream: Stream) -> None:
    """Sends 60,000 bytes after a Content-Length of 40,000.

    The client reads while the server writes. After some record, it may have read exactly the announced 40,000
    bytes.
    """
    stream.send(stream.head((b"content-length", b"40000")))
    data = stream.body.ljust(1000)
    for _ in range(59):
        stream.send(stream.data(data))
    stream.send(stream.data(data, end=True))
