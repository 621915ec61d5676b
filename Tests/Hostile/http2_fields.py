"""Scenarios with odd fields and field blocks of HTTP/2 (RFC 9113, section 8; RFC 7541)."""

from __future__ import annotations

from hpack import block, indexed_literal, integer, literal, text
from http2 import CONTINUATION, END_HEADERS, END_STREAM, HEADERS, Stream
from scenarios import http2

Field = tuple[bytes, bytes]


def fields(name: str, *more: Field) -> None:
    """Adds a scenario whose response has these fields after the usual ones."""

    @http2(name)
    def play(stream: Stream) -> None:
        stream.send(stream.head(*more) + stream.data(end=True))


def heads(name: str, *all_of_them: Field) -> None:
    """Adds a scenario whose response has the right body, and these fields instead of the usual ones."""

    @http2(name)
    def play(stream: Stream) -> None:
        stream.send(stream.headers(block(*all_of_them)) + stream.data(end=True))


OK = (b":status", b"200")
CACHED = (b"cache-control", b"max-age=3600")

fields("good")
fields("name-in-upper-case", (b"X-Odd", b"one"))
fields("name-empty", (b"", b"one"))
fields("name-with-space", (b"x odd", b"one"))
fields("name-with-colon", (b"x:odd", b"one"))
fields("name-with-nul", (b"x\0odd", b"one"))
fields("name-with-lf", (b"x\nodd", b"one"))
fields("name-8-bit", (b"x\xe9", b"one"))
fields("value-with-nul", (b"x-odd", b"one\0two"))
fields("value-with-lf", (b"x-odd", b"one\nx-forged: two"))
fields("value-with-cr-lf", (b"x-odd", b"one\r\nx-forged: two"))
fields("value-with-cr", (b"x-odd", b"one\rtwo"))
fields("value-with-cr-lf-and-the-head-s-end", (b"x-odd", b"one\r\n\r\nforged"))
fields("value-with-spaces-around", (b"x-odd", b" one "))
fields("value-8-bit", (b"x-odd", b"caf\xe9"))
fields("value-like-a-status-line", (b"x-odd", b"HTTP/1.1 404 Not Found"))
fields("connection", (b"connection", b"close"))
fields("keep-alive", (b"keep-alive", b"timeout=5"))
fields("transfer-encoding", (b"transfer-encoding", b"chunked"))
fields("upgrade", (b"upgrade", b"h2c"))
fields("proxy-connection", (b"proxy-connection", b"keep-alive"))
fields("two-status", (b":status", b"404"))
fields("pseudo-field-of-requests", (b":path", b"/"))
fields("pseudo-field-unknown", (b":odd", b"one"))
fields("long-value", (b"x-odd", b"a" * 15_000))
heads("no-status", CACHED)
heads("no-field-at-all")
heads("status-behind-a-field", CACHED, OK)
heads("two-status-first", OK, (b":status", b"404"), CACHED)
heads("status-empty", (b":status", b""), CACHED)
heads("status-099", (b":status", b"099"), CACHED)
heads("status-000", (b":status", b"000"), CACHED)
heads("status-20", (b":status", b"20"), CACHED)
heads("status-1000", (b":status", b"1000"), CACHED)
heads("status-plus", (b":status", b"+200"), CACHED)
heads("status-with-reason", (b":status", b"200 OK"), CACHED)
heads("status-101", (b":status", b"101"), CACHED)
heads("status-of-http1", (b":status", b"HTTP/1.1 200"), CACHED)

# The status of an interim response.
EARLY = (b":status", b"103")


@http2("hints-before-the-answer")
def hints(stream: Stream) -> None:
    early = block(EARLY, (b"link", b"</a>"), (b"x-hint", b"1"), (b"cache-control", b"no-store"))
    stream.send(stream.headers(early) + stream.headers(block((b":status", b"100"))) + stream.right())


@http2("hints-that-end-the-stream")
def hints_end(stream: Stream) -> None:
    stream.send(stream.headers(block(EARLY), end=True))


@http2("hints-then-data")
def hints_data(stream: Stream) -> None:
    stream.send(stream.headers(block(EARLY)) + stream.data(end=True))


@http2("switching-then-an-answer")
def switching(stream: Stream) -> None:
    stream.send(stream.headers(block((b":status", b"101"))) + stream.right())


@http2("status-200-ends-without-body")
def without_body(stream: Stream) -> None:
    stream.send(stream.head(end=True))


def trailers(name: str, *lines: Field, end: bool = True) -> None:
    """Adds a scenario whose response has these trailers. `end`: whether the stream ends with them."""

    @http2(name)
    def play(stream: Stream) -> None:
        stream.send(stream.head() + stream.data() + stream.headers(block(*lines), end=end))


trailers("trailers-good", (b"x-trailer", b"one"))
trailers("trailers-change-nothing", (b"x-answer", b"0"), (b"cache-control", b"no-store"))
trailers("trailers-with-status", (b":status", b"404"))
trailers("trailers-that-do-not-end", (b"x-trailer", b"one"), end=False)
trailers("trailers-in-upper-case", (b"X-Trailer", b"one"))
trailers("trailers-with-connection", (b"connection", b"close"))


@http2("head-twice")
def head_twice(stream: Stream) -> None:
    stream.send(stream.head() + stream.head() + stream.data(end=True))


@http2("trailers-twice")
def trailers_twice(stream: Stream) -> None:
    trailer = block((b"x-trailer", b"one"))
    end = stream.headers(trailer, end=True)
    stream.send(stream.head() + stream.data() + end + end)


@http2("data-behind-trailers")
def data_behind_trailers(stream: Stream) -> None:
    trailer = block((b"x-trailer", b"one"))
    answer = stream.head() + stream.data() + stream.headers(trailer, end=True)
    stream.send(answer + stream.data(b"forged", end=True))


def raw(name: str, make: bytes, *, before: bool = False) -> None:
    """Adds a scenario whose response has these bytes in its field block, after or before the usual fields."""

    @http2(name)
    def play(stream: Stream) -> None:
        usual = block(*stream.fields)
        stream.send(stream.headers(make + usual if before else usual + make) + stream.data(end=True))


raw("hpack-index-0", b"\x80")
# Index 62 is the first entry of the dynamic table (RFC 7541, section 2.3.3), which is empty here.
raw("hpack-index-not-there", integer(62, 7, 0x80))
raw("hpack-index-huge", integer(1 << 40, 7, 0x80))
raw("hpack-name-index-not-there", integer(99, 4) + text(b"one"))
raw("hpack-integer-without-end", b"\xff" + b"\xff" * 40)
raw("hpack-integer-cut", b"\xff\xff")
raw("hpack-string-cut", b"\x00" + text(b"x-odd") + b"\x7f\x00one")
raw("hpack-name-cut", b"\x00\x05x-o")
raw("hpack-value-missing", b"\x00" + text(b"x-odd"))
raw("hpack-string-too-long", b"\x00" + text(b"x-odd") + b"\x7f\xff\xff\xff\xff\x0f")
raw("hpack-huffman-end-of-string", b"\x00" + text(b"x-odd") + b"\x84\xff\xff\xff\xff")
raw("hpack-huffman-padding-with-zeros", b"\x00" + text(b"x-odd") + b"\x81\x18")
raw("hpack-huffman-padding-of-a-byte", b"\x00" + text(b"x-odd") + b"\x82\x1f\xff")
raw("hpack-table-size-too-large", integer(1 << 20, 5, 0x20), before=True)
raw("hpack-table-size-zero", integer(0, 5, 0x20), before=True)
raw("hpack-table-size-behind-a-field", integer(0, 5, 0x20))
raw("hpack-never-indexed", b"\x10" + text(b"x-odd") + text(b"one"))
raw("hpack-entry-larger-than-the-table", indexed_literal(b"x-odd", b"a" * 5000))


@http2("hpack-entries-again-and-again")
def bomb(stream: Stream) -> None:
    """Sends 47 MB of fields in 16 kB: one entry of 4 kB in the dynamic table, and 12,000 references to it."""
    first = block(*stream.fields) + indexed_literal(b"x-odd", b"a" * 3900)
    named = integer(62, 7, 0x80) * 12_000
    head = stream.frame(HEADERS, 0, first) + stream.frame(CONTINUATION, END_HEADERS, named)
    stream.send(head + stream.data(end=True))


@http2("hpack-many-fields")
def many_fields(stream: Stream) -> None:
    lines = b"".join(literal(b"x-%d" % number, b"a") for number in range(1_500))
    frames = [stream.frame(HEADERS, 0, block(*stream.fields))]
    frames += [stream.frame(CONTINUATION, 0, lines[at : at + 16_000]) for at in range(0, len(lines), 16_000)]
    stream.send(b"".join(frames) + stream.frame(CONTINUATION, END_HEADERS) + stream.data(end=True))


@http2("hpack-a-megabyte-of-fields")
def megabyte(stream: Stream) -> None:
    lines = b"".join(literal(b"x-%d" % number, b"a" * 100) for number in range(10_000))
    frames = [stream.frame(HEADERS, 0, block(*stream.fields))]
    frames += [stream.frame(CONTINUATION, 0, lines[at : at + 16_000]) for at in range(0, len(lines), 16_000)]
    stream.send(b"".join(frames) + stream.frame(CONTINUATION, END_HEADERS) + stream.data(end=True))


@http2("hpack-block-in-pieces-of-a-byte")
def pieces(stream: Stream) -> None:
    lines = block(*stream.fields)
    frames = [stream.frame(HEADERS, 0, lines[:1])]
    frames += [stream.frame(CONTINUATION, 0, lines[at : at + 1]) for at in range(1, len(lines))]
    stream.send(b"".join(frames) + stream.frame(CONTINUATION, END_HEADERS) + stream.data(end=True))


@http2("hpack-empty-block-with-end")
def empty_block(stream: Stream) -> None:
    """Sends a head without any field, which ends the stream."""
    stream.send(stream.frame(HEADERS, END_HEADERS | END_STREAM))
