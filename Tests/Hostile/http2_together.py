"""Scenarios with several requests on one HTTP/2 connection.

In most of them the server breaks a rule of HTTP/2 or exceeds a limit of libcurl. The tests check the results
of all requests on the connection.
"""

from __future__ import annotations

import re
import struct
import time

from hpack import indexed_literal, integer, literal
from host import PATIENCE, Late
from http2 import ACK, DATA, END_HEADERS, END_STREAM, HEADERS, PING, RST_STREAM, WINDOW_UPDATE, Session, Stream, frame, settings
from scenarios import Scenario, add, http2, http2_together

# A PING frame on stream 1. PING is allowed only on stream 0, so the client must end the connection (RFC 9113,
# section 6.7).
BAD = frame(PING, 0, 1, bytes(8))
# Opens the flow-control windows of a connection and its streams as far as possible.
WIDE_WINDOWS = settings((4, 0x7FFFFFFF)) + frame(WINDOW_UPDATE, 0, 0, struct.pack("!I", 0x7FFF0000))
# A pause between two sends, in seconds. It is so long that the client normally reads what comes before it and
# what comes after it in different turns of its event loop.
PAUSE = 0.05


def send(streams: list[Stream], *pieces: bytes) -> None:
    """Sends the pieces together: in one TLS record, if they are at most 16 KiB."""
    streams[0].send(b"".join(pieces))


def large_head(tail: bytes, length: int | None = None) -> bytes:
    """A field block that is too large for libcurl, followed by the bytes `tail`.

    The decoded fields are longer than libcurl accepts (128 KiB). The block takes only about 7 kB on the wire,
    because it refers to one field of 4 kB in the dynamic table 31 times.

    `length` is for a fault of libcurl 7.88 (docs/adr/0025): libcurl gives a HEADERS frame with such a block
    to nghttp2 twice. nghttp2 then takes the second copy of the frame for the rest of the block, and decodes
    it from the first byte of the frame's header:

    - The first byte of the frame's length, 0, begins a literal field. The second byte is the length of the
      field's name.
    - The name consists of `length` bytes, which come before "nnn..." in the frame, and of "nnn...". The
      function chooses the number of "n" so that this is the length in the second byte. The rest of the block
      is decoded as before.
    - The decoding began 9 bytes too early and ends 9 bytes too early. nghttp2 therefore takes the last 9
      bytes, `tail`, for the header of the next frame.

    Without `length`, the block is not prepared for this fault.
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
    """Answers all requests but the first one, and sends the bad frame with the responses."""
    send(streams, *(stream.right() for stream in streams[1:]), BAD)


@http2_together("many-settings")
def many_settings(streams: list[Stream]) -> None:
    """Sends one SETTINGS frame with 600 settings. nghttp2 by default accepts at most 32."""
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
    """Adds a scenario with a too large head whose last 9 bytes look like the header of a DATA frame.

    The head is the response on `streams[index]`. The DATA frame would contain the whole body on
    `streams[other]`. A client that decodes the head twice (`large_head`) takes the frame behind the head,
    which has an unknown type, for this body.
    """

    @http2_together(name)
    def play(streams: list[Stream]) -> None:
        body = frame(0xBB, 0, 0, b"forged answer, in a frame of a type that every client skips")
        tail = len(body).to_bytes(3, "big") + struct.pack("!BBI", DATA, END_STREAM, streams[other].id)
        send(streams, *(stream.head() for stream in streams if stream is not streams[index]))
        time.sleep(PAUSE)
        # Before the name "nnn..." come the last 7 bytes of the frame's header (the first 2 begin the forged
        # field), and 3 bytes of the block: the status, the type of the field, and the length of its name.
        block = large_head(tail, 7 + 3)
        send(streams, frame(HEADERS, END_HEADERS, streams[index].id, block))
        time.sleep(PAUSE)
        send(streams, body)


for each_index in range(4):
    for each_other in range(4):
        if each_index != each_other:
            forged(f"forged-in-the-head-of-{each_index}-for-{each_other}", each_index, each_other)


@http2_together("sixty", width=60)
def sixty(streams: list[Stream]) -> None:
    """Answers sixty requests when all have arrived. Until then, the client receives nothing."""
    send(streams, *(stream.right() for stream in streams))


# A TLS record that nobody can decrypt (RFC 8446, section 5.2).
INVALID_RECORD = b"\x17\x03\x03\x00\x20" + bytes(32)


@http2_together("heads-and-an-invalid-record")
def heads_and_record(streams: list[Stream]) -> None:
    """Sends the heads and then a record that nobody can decrypt. The TCP connection stays open."""
    send(streams, *(stream.head() for stream in streams))
    streams[0].session.connection.send_raw(INVALID_RECORD)


@http2_together("invalid-record")
def invalid_record(streams: list[Stream]) -> None:
    streams[0].session.connection.send_raw(INVALID_RECORD)


@http2_together("resets-beside-answers")
def resets(streams: list[Stream]) -> None:
    """Answers the first and the third request, and resets the other two streams.

    One of these resets has the code NO_ERROR and comes after the body. The other one has the code CANCEL and
    comes instead of the body.
    """
    pieces = [streams[0].right(), streams[1].head() + streams[1].data() + streams[1].reset(0)]
    pieces += [streams[2].right(), streams[3].head() + streams[3].reset(8)]
    send(streams, *pieces)


@http2_together("a-reset-for-each")
def reset_each(streams: list[Stream]) -> None:
    """Resets each stream with NO_ERROR before the last byte of its body."""
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


def stop_reading(stream: Stream) -> Late:
    """Stops reading from the connection until the test asks for /release, and at most for `PATIENCE` seconds.

    This function runs on the thread that reads, so the requests fill the socket. Meanwhile the function sends
    PING acknowledgements, so that the connection looks alive. The caller sets `done` of the result.
    """
    stream.session.is_deaf = True
    # Only the full socket then stops the client from sending.
    stream.send(WIDE_WINDOWS)
    late = stream.session.host.late()
    end = time.monotonic() + PATIENCE
    while not late.due.wait(PAUSE) and time.monotonic() < end:
        stream.send(frame(PING, ACK, 0, bytes(8)))
    return late


@http2("deaf", is_early=True)
def deaf(stream: Stream) -> None:
    """Stops reading when the head of the connection's first request has arrived.

    No request of the connection gets a response, not even after the pause.
    """
    if not stream.session.is_deaf:
        stop_reading(stream).done.set()


@http2("deaf-for-a-while", is_early=True)
def deaf_for_a_while(stream: Stream) -> None:
    """Stops reading from the host's first connection for a time, and then answers all requests rightly."""
    if stream.session.connection.number == 1 and not stream.session.is_deaf:
        stop_reading(stream).done.set()
    stream.send(stream.right())


@http2("deaf-then-an-invalid-record", is_early=True)
def deaf_then_invalid(stream: Stream) -> None:
    """Stops reading for a time, and then sends a record that nobody can decrypt. The connection stays open.

    Answers the requests of further connections rightly.
    """
    if stream.session.connection.number > 1:
        stream.send(stream.right())
    elif not stream.session.is_deaf:
        late = stop_reading(stream)
        stream.session.connection.send_raw(INVALID_RECORD)
        late.done.set()


@http2("slow")
def slow(stream: Stream) -> None:
    """Sends the right response byte by byte, while the session's thread reads further requests."""

    def play() -> None:
        stream.send(stream.head())
        for byte in stream.body:
            time.sleep(PAUSE)
            stream.send(stream.data(bytes([byte])))
        stream.send(stream.data(b"", end=True))

    stream.session.beside(play)


def open_windows(session: Session) -> None:
    """Opens the flow-control windows, and sends PING frames until the connection ends.

    The acknowledgements are small frames, which the client sends between the DATA frames of its requests.
    """
    session.send(WIDE_WINDOWS)

    def play() -> None:
        while True:
            session.send(frame(PING, 0, 0, bytes(8)))
            time.sleep(PAUSE / 10)

    session.beside(play)


def check_body(stream: Stream) -> None:
    """Compares the digest of the request's body with the parameter `digest` of its URL."""
    found = re.search(rb"digest=(\w+)", stream.path)
    if found is None or found[1].decode() != stream.digest.hexdigest():
        stream.session.host.note(f"{stream.method.decode()} {stream.question} altered")
    stream.send(stream.right())


add(Scenario("h2-checks-bodies", protocol="h2", on_session=open_windows, on_stream=check_body))
