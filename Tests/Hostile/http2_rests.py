"""Scenarios in which libcurl before 8.1.0 reads the inside of a body as frames.

The server sends only valid frames. libcurl stops reading a connection when a stream's buffer of 128 KiB is full. When
that stream ends, it forgets the bytes of the TLS record that it has not read, and reads on with the next record.
"""

from __future__ import annotations

from hpack import block, indexed_literal, integer, literal
from http2 import DATA, END_HEADERS, END_STREAM, HEADERS, Stream, frame
from scenarios import http2

# The size of libcurl's buffer for a stream, and of the head with which the server fills it but for a few bytes.
BUFFER = 128 * 1024
HEAD = BUFFER - 72


def long_head(*fields: tuple[bytes, bytes]) -> bytes:
    """A field block whose fields have `HEAD` bytes in HTTP/1.1 form. It has 4 kB, because it repeats a field."""
    used = len(b"HTTP/2 200 \r\n") + sum(len(name) + len(value) + 4 for name, value in fields) + 2
    count, rest = divmod(HEAD - used, 3905)
    repeated = indexed_literal(b"x", b"v" * 3900) + integer(62, 7, 0x80) * (count - 1)
    last = literal(b"y", b"w" * (rest - 5)) if rest >= 5 else b""
    return block((b":status", b"200"), *fields) + repeated + last


@http2("forgotten-rest")
def forgotten_rest(stream: Stream) -> None:
    # The client refuses the response for its coding, so the stream ends with a full buffer.
    head = stream.headers(long_head((b"content-encoding", b"unknown")))
    following = stream.id + 2
    forged = frame(HEADERS, END_HEADERS, following, block((b":status", b"200"), (b"content-length", b"6")))
    forged += frame(DATA, END_STREAM, following, b"FORGED")
    # The inside of one DATA frame, whose header is at the end of the first record. libcurl takes the second record
    # for the beginning of a frame, which ends in the third record, before the forged response.
    second = frame(DATA, 0, stream.id, b"." * 1091)[:1000]
    third = b"." * 100 + forged + b"." * 500
    whole = frame(DATA, 0, stream.id, second + third)
    stream.send(head + stream.data(b"B" * 8000) + whole[:9])
    stream.send(second)
    stream.send(third)
    stream.session.host.note("sent")
