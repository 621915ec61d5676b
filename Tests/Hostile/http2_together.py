"""What becomes of the other requests of an HTTP/2 connection when the server breaks a rule, or libcurl's limits, on it."""

from __future__ import annotations

import struct
import time

from hpack import indexed_literal, integer, literal
from host import PATIENCE
from http2 import ACK, DATA, END_HEADERS, END_STREAM, HEADERS, PING, RST_STREAM, WINDOW_UPDATE, Stream, frame, settings
from scenarios import http2, http2_together

# A frame of the connection on a stream.
BAD = frame(PING, 0, 1, bytes(8))
# Between what the client is to read in different turns. No test waits for it.
PAUSE = 0.05


def send(streams: list[Stream], *pieces: bytes) -> None:
    """Sends all in one record."""
    streams[0].send(b"".join(pieces))


def large_head(tail: bytes, length: int | None = None) -> bytes:
    """A block that is more than libcurl's 128 KiB before its tail: what comes from the table is a few bytes on the wire.

    With a length, the name in it is chosen so that the higher bytes of the block's own length are the sum of both: whoever reads the block
    once more from its middle then finds the tail where a frame begins.
    """
    for count in range(1, 300):
        block = b"\x88" + literal(b"n" * count, b"v" * 3000) + indexed_literal(b"x-b", b"a" * 4000)
        block += integer(62, 7, 0x80) * 31
        if length is None or (len(block) + len(tail)) >> 8 == length + count:
            return block + tail
    raise ValueError("no such block")


@http2_together("heads-and-a-bad-frame")
def heads(streams: list[Stream]) -> None:
    send(streams, *(stream.head() for stream in streams), BAD)


@http2_together("bodies-and-a-bad-frame")
def bodies(streams: list[Stream]) -> None:
    send(streams, *(stream.head() + stream.data() for stream in streams), BAD)


@http2_together("one-body-and-a-bad-frame")
def one_body(streams: list[Stream]) -> None:
    send(streams, streams[0].head() + streams[0].data(b"x"), BAD)


@http2_together("heads-then-a-bad-frame")
def heads_then(streams: list[Stream]) -> None:
    send(streams, *(stream.head() for stream in streams))
    time.sleep(PAUSE)
    send(streams, BAD)


@http2_together("bad-frame")
def bad_frame(streams: list[Stream]) -> None:
    send(streams, BAD)


@http2_together("whole-answers-and-a-bad-frame")
def whole(streams: list[Stream]) -> None:
    send(streams, *(stream.right() for stream in streams[1:]), BAD)


@http2_together("many-settings")
def many_settings(streams: list[Stream]) -> None:
    send(streams, *(stream.head() for stream in streams), settings(*[(4, 65_535)] * 600))


@http2_together("too-large-a-head")
def too_large(streams: list[Stream]) -> None:
    send(streams, *(stream.head() for stream in streams[1:]))
    time.sleep(PAUSE)
    send(streams, streams[0].headers(large_head(b"")))


@http2_together("too-large-a-head-behind-whole-answers")
def too_large_behind(streams: list[Stream]) -> None:
    send(streams, *(stream.right() for stream in streams[1:]), streams[0].headers(large_head(b"")))


def forged(name: str, index: int, other: int) -> None:
    """Adds a scenario whose response has a HEADERS frame that ends like the head of a DATA frame of another stream.

    A client that reads on at the wrong place takes the next bytes for the other stream's body.
    """

    @http2_together(name)
    def play(streams: list[Stream]) -> None:
        body = frame(0xBB, 0, 0, b"forged answer, in a frame of a type that every client skips")
        tail = len(body).to_bytes(3, "big") + struct.pack("!BBI", DATA, END_STREAM, streams[other].id)
        send(streams, *(stream.head() for stream in streams if stream is not streams[index]))
        time.sleep(PAUSE)
        block = large_head(tail, 7 + 3)
        send(streams, frame(HEADERS, END_HEADERS, streams[index].id, block))
        time.sleep(PAUSE)
        send(streams, body)


for each_index in range(4):
    for each_other in range(4):
        if each_index != each_other:
            forged(f"forged-in-the-head-of-{each_index}-for-{each_other}", each_index, each_other)


@http2_together("resets-beside-answers")
def resets(streams: list[Stream]) -> None:
    pieces = [streams[0].right(), streams[1].head() + streams[1].data() + streams[1].reset(0)]
    pieces += [streams[2].right(), streams[3].head() + streams[3].reset(8)]
    send(streams, *pieces)


@http2_together("a-reset-for-each")
def reset_each(streams: list[Stream]) -> None:
    send(streams, *(s.head() + s.data(s.body[:-1]) + s.frame(RST_STREAM, 0, bytes(4)) for s in streams))


@http2_together("cut-while-they-are-held-back")
def cut_held(streams: list[Stream]) -> None:
    """Resets three streams while the client holds back their bodies, and then answers the fourth request."""
    *cut, whole = sorted(streams, key=lambda stream: stream.question)
    send(streams, *(s.head() + s.data(bytes(16_000)) * 4 for s in cut))
    time.sleep(PAUSE)
    send(streams, *(s.reset(2) for s in cut))
    time.sleep(PAUSE)
    whole.send(whole.right())


@http2("deaf", is_early=True)
def deaf(stream: Stream) -> None:
    """Stops reading until the test releases it.

    Sends PING acknowledgements, so that it looks alive, but no response.
    """
    if stream.session.is_deaf:
        return
    stream.session.is_deaf = True
    # As much as the client likes, so that it fills the socket.
    stream.send(settings((4, 0x7FFFFFFF)) + frame(WINDOW_UPDATE, 0, 0, struct.pack("!I", 0x7FFF0000)))
    late = stream.session.host.late()
    end = time.monotonic() + PATIENCE
    while not late.due.wait(PAUSE) and time.monotonic() < end:
        stream.send(frame(PING, ACK, 0, bytes(8)))
    late.done.set()


@http2("slow")
def slow(stream: Stream) -> None:
    """Sends the right response slowly, byte by byte, while other requests of the connection are served."""

    def play() -> None:
        stream.send(stream.head())
        for byte in stream.body:
            time.sleep(PAUSE)
            stream.send(stream.data(bytes([byte])))
        stream.send(stream.data(b"", end=True))

    stream.session.beside(play)
