"""Where bodies end: lengths and chunks (RFC 9112, sections 6 and 7)."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable

from http1 import Exchange
from scenarios import http1, http1_bytes


def lengths(name: str, *values: bytes, then: str = "wait") -> None:
    """Adds a scenario whose response has these Content-Length fields and the right body.

    `#` in a value stands for the right length, `~` for one less. `then` says what follows the response, as in
    `http1_bytes`.
    """

    def answer(exchange: Exchange) -> bytes:
        count = len(exchange.body)
        numbers = [value.replace(b"#", b"%d" % count).replace(b"~", b"%d" % (count - 1)) for value in values]
        return exchange.head(*[b"Content-Length:" + number for number in numbers]) + exchange.body

    http1_bytes(name, answer, then=then)


lengths("length-two-different", b" #", b" ~")
lengths("length-two-different-reversed", b" ~", b" #")
lengths("length-two-equal", b" #", b" #")
lengths("length-list-equal", b" #, #")
lengths("length-list-different", b" #, ~")
lengths("length-list-different-reversed", b" ~, #")
lengths("length-list-with-empty-element", b" #,")
lengths("length-negative", b" -#", then="close")
lengths("length-plus", b" +#", then="close")
lengths("length-1e30", b" 1" + b"0" * 30, then="close")
lengths("length-2-to-the-63", b" 9223372036854775808", then="close")
lengths("length-2-to-the-64-and-9", b" 18446744073709551625", then="close")
lengths("length-hex", b" 0x9", then="close")
lengths("length-empty", b"", then="close")
lengths("length-letters-behind", b" #abc", then="close")
lengths("length-two-words", b" # #", then="close")
lengths("length-decimal-point", b" #.0", then="close")
lengths("length-semicolon", b" #;a=b", then="close")
lengths("length-quoted", b' "#"', then="close")
lengths("length-zeros-before", b" 000000#")
lengths("length-spaces-around", b"  \t# \t ")
lengths("length-nothing-before", b"#")
lengths("length-too-long", b" 1#", then="close")
lengths("length-too-long-reset", b" 1#", then="reset")
lengths("length-too-short", b" ~")
lengths("length-zero-with-body", b" 0")


def coded(name: str, *lines: bytes, body: str = "chunked", then: str = "close") -> None:
    """Adds a scenario whose response has these field lines and a whole body.

    `body` names the format of the body: `plain`, or a text with `gzip`, `chunked` or both. `#` in a line
    stands for the length of the right body. `then` says what follows the response, as in `http1_bytes`.
    """

    def answer(exchange: Exchange) -> bytes:
        data = exchange.body
        if "gzip" in body:
            packer = zlib.compressobj(wbits=31)
            data = packer.compress(data) + packer.flush()
        if "chunked" in body:
            data = exchange.chunk(data) + b"0\r\n\r\n"
        count = b"%d" % len(exchange.body)
        return exchange.head(*[text.replace(b"#", count) for text in lines]) + data

    http1_bytes(name, answer, then=then)


coded("length-before-chunked", b"Content-Length: #", b"Transfer-Encoding: chunked", then="wait")
coded("length-behind-chunked", b"Transfer-Encoding: chunked", b"Content-Length: #", then="wait")
coded("length-odd-before-chunked", b"Content-Length: -1", b"Transfer-Encoding: chunked", then="wait")
coded("coding-identity", b"Transfer-Encoding: identity", body="plain")
for number in (b"0", b"3", b"#", b"1000"):

    def both(exchange: Exchange, number: bytes = number) -> bytes:
        """A head that announces chunks, and has a Content-Length too."""
        length = number.replace(b"#", b"%d" % len(exchange.body))
        return exchange.head(b"Transfer-Encoding: chunked", b"Content-Length: " + length)

    size = number.replace(b"#", b"right").decode()
    http1_bytes(f"chunked-and-length-{size}", lambda e, both=both: both(e) + e.chunk() + LAST)
    http1_bytes(f"chunked-and-length-{size}-cut", lambda e, both=both: both(e) + e.chunk(), then="close")
    http1_bytes(f"chunked-and-length-{size}-cut-in-chunk", lambda e, both=both: both(e) + e.chunk()[:-5], then="close")

    @http1(f"chunked-and-length-{size}-body-later")
    def later(exchange: Exchange, both: Callable[[Exchange], bytes] = both) -> None:
        """Sends the body 20 ms after the head, so that the client reads the head alone."""
        exchange.send(both(exchange))
        time.sleep(0.02)
        exchange.send(exchange.chunk() + LAST)


coded("coding-identity-and-length", b"Transfer-Encoding: identity", b"Content-Length: #", body="plain")
coded("coding-gzip", b"Transfer-Encoding: gzip", body="gzip")
coded("coding-gzip-chunked", b"Transfer-Encoding: gzip, chunked", body="gzip chunked")
coded("coding-chunked-gzip", b"Transfer-Encoding: chunked, gzip", body="chunked")
coded("coding-chunked-chunked", b"Transfer-Encoding: chunked, chunked")
coded("coding-chunked-on-two-lines", b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked")
coded("coding-chunked-identity", b"Transfer-Encoding: chunked, identity")
coded("coding-identity-chunked", b"Transfer-Encoding: identity", b"Transfer-Encoding: chunked")
coded("coding-xchunked", b"Transfer-Encoding: xchunked")
coded("coding-chunkedx", b"Transfer-Encoding: chunkedx")
coded("coding-chunked-upper-case", b"Transfer-Encoding: CHUNKED", then="wait")
coded("coding-chunked-with-parameter", b"Transfer-Encoding: chunked;a=b", then="wait")
coded("coding-chunked-quoted", b'Transfer-Encoding: "chunked"')
coded("coding-vertical-tab", b"Transfer-Encoding: \x0bchunked")
coded("coding-empty", b"Transfer-Encoding:", b"Content-Length: #", body="plain")
http1_bytes(
    "coding-chunked-over-http-1-0",
    lambda exchange: exchange.chunked(exchange.chunk(), b"0\r\n\r\n").replace(b"HTTP/1.1", b"HTTP/1.0", 1),
    then="close",
)

# The last chunk, without trailers.
LAST = b"0\r\n\r\n"


def chunks(name: str, size: bytes, *, then: str = "close") -> None:
    """Adds a scenario whose response is chunked and has `size` as the size line of its first chunk.

    `#` in the line stands for the right size.
    """

    def answer(exchange: Exchange) -> bytes:
        line = size.replace(b"#", b"%x" % len(exchange.body))
        return exchange.chunked(line, b"\r\n", exchange.body, b"\r\n", LAST)

    http1_bytes(name, answer, then=then)


chunks("chunk-size-2-to-the-64-and-9", b"10000000000000009")
chunks("chunk-size-2-to-the-68", b"fffffffffffffffff")
chunks("chunk-size-2-to-the-64-less-1", b"ffffffffffffffff")
chunks("chunk-size-2-to-the-63", b"8000000000000000")
chunks("chunk-size-negative", b"-#")
chunks("chunk-size-plus", b"+#")
chunks("chunk-size-empty", b"")
chunks("chunk-size-hex-prefix", b"0x#")
http1_bytes("chunk-size-hex-prefix-then-empty-line", lambda e: e.chunked(b"0x2\r\n", b"\r\n", b"\r\n", LAST), then="wait")
chunks("chunk-size-no-digit", b"g")
chunks("chunk-size-underscore", b"0_#")
chunks("chunk-size-space-before", b" #")
chunks("chunk-size-space-behind", b"# ", then="wait")
chunks("chunk-size-zeros-before", b"000#", then="wait")
chunks("chunk-size-many-zeros-before", b"0" * 100_000 + b"#")
chunks("chunk-size-semicolon-first", b";a=b")
chunks("chunk-extension", b"#;name=value", then="wait")
chunks("chunk-extension-quoted", b'#;name="a;b"', then="wait")
chunks("chunk-extension-of-a-megabyte", b"#;a=" + b"b" * (1 << 20), then="wait")
chunks("chunk-extension-with-lf", b"#;a\nb")
chunks("chunk-extension-with-cr", b"#;a\rb")
chunks("chunk-size-too-large", b"1#")

http1_bytes("chunk-line-bare-lf", lambda e: e.chunked(e.chunk(), LAST.replace(b"\r\n", b"\n")), then="close")
http1_bytes("chunks-bare-lf", lambda e: e.chunked(e.chunk().replace(b"\r\n", b"\n"), LAST), then="close")
http1_bytes("chunk-line-bare-cr", lambda e: e.chunked(e.chunk().replace(b"\r\n", b"\r", 1), LAST), then="close")
http1_bytes("chunk-end-missing", lambda e: e.chunked(e.chunk()[:-2], LAST), then="close")
http1_bytes("chunk-end-wrong", lambda e: e.chunked(e.chunk()[:-2], b"XX", LAST), then="close")
http1_bytes("chunk-end-half", lambda e: e.chunked(e.chunk()[:-1], LAST), then="close")
http1_bytes("chunk-end-lf-cr", lambda e: e.chunked(e.chunk()[:-2], b"\n\r", LAST), then="close")
http1_bytes("chunk-longer-than-its-size", lambda e: e.chunked(e.chunk()[:-2], b"more\r\n", LAST), then="close")
http1_bytes("chunk-last-in-between", lambda e: e.chunked(e.chunk(), LAST, e.chunk(b"more"), LAST))
http1_bytes("chunk-last-missing", lambda e: e.chunked(e.chunk()), then="close")
http1_bytes("chunk-last-missing-reset", lambda e: e.chunked(e.chunk()), then="reset")
http1_bytes("chunk-last-without-line-end", lambda e: e.chunked(e.chunk(), b"0"), then="close")
http1_bytes("chunk-last-without-empty-line", lambda e: e.chunked(e.chunk(), b"0\r\n"), then="close")
http1_bytes("chunk-last-with-half-an-empty-line", lambda e: e.chunked(e.chunk(), b"0\r\n\r"), then="close")
http1_bytes("chunk-last-then-garbage", lambda e: e.chunked(e.chunk(), b"0\r\nXX"), then="close")
http1_bytes("chunk-cut-in-data", lambda e: e.chunked(e.chunk()[:-5]), then="close")
http1_bytes("chunk-cut-in-size", lambda e: e.chunked(e.chunk(), b"1"), then="close")
http1_bytes("chunk-cut-before-the-first", lambda e: e.chunked(), then="close")
http1_bytes("chunk-last-is-many-zeros", lambda e: e.chunked(e.chunk(), b"000000\r\n\r\n"))
for name, behind in [("letter", b"g"), ("space-and-digit", b" 5"), ("cr-and-digit", b"\r5"), ("nul", b"\0")]:
    http1_bytes(f"chunk-last-then-{name}", lambda e, behind=behind: e.chunked(e.chunk(), b"0" + behind + b"\r\n\r\n"), then="wait")
http1_bytes("chunk-last-with-extension", lambda e: e.chunked(e.chunk(), b"0;a=b\r\n\r\n"))
http1_bytes("chunked-body-is-none", lambda e: e.head(b"Transfer-Encoding: chunked") + e.body, then="close")


def trailers(name: str, *lines: bytes, then: str = "wait", end: bytes = b"\r\n\r\n") -> None:
    """Adds a scenario whose response is chunked and has these trailers.

    `end` follows the last trailer: by default the end of its line, and the empty line that ends the response.
    """
    http1_bytes(name, lambda e: e.chunked(e.chunk(), b"0\r\n", b"\r\n".join(lines), end), then=then)


trailers("trailers-good", b"X-Trailer: one", b"X-Other: two")
trailers("trailers-change-nothing", b"X-Answer: 0", b"Cache-Control: no-store", b"Content-Length: 3")
trailers("trailers-with-transfer-encoding", b"Transfer-Encoding: gzip", b"Connection: keep-alive")
trailers("trailers-without-colon", b"garbage")
trailers("trailers-folded", b"X-Trailer: one\r\n two")
trailers("trailers-like-a-status-line", b"HTTP/1.1 404 Not Found")
trailers("trailers-with-nul", b"X-Trailer: a\0b")
trailers("trailers-cut", b"X-Trailer: one", then="close", end=b"")
trailers("trailers-cut-behind-a-line", b"X-Trailer: one", then="close", end=b"\r\n")
trailers("trailers-reset", b"X-Trailer: one", then="reset", end=b"\r\n")


@http1("chunks-in-pieces-of-a-byte")
def pieces(exchange: Exchange) -> None:
    body = b"".join(exchange.chunk(bytes([byte])) for byte in exchange.body)
    for byte in exchange.chunked(body, LAST):
        exchange.send(bytes([byte]))


def bodiless(name: str, status: bytes, *lines: bytes, body: bytes = b"forged") -> None:
    """Adds a scenario whose response has a status that allows no body, and by default a body all the same."""
    http1_bytes(name, lambda exchange: exchange.head(*lines, status=status) + body)


# The test requests the scenarios that begin with "head-" by HEAD, so their responses must have no body.
http1_bytes("head-with-body-at-once", lambda e: e.right())
http1_bytes("head-with-chunked-body", lambda e: e.chunked(e.chunk(), LAST))
http1_bytes("head-with-answer-as-body", lambda e: e.right(body=e.forged()))
bodiless("no-content-with-body", b"HTTP/1.1 204 No Content")
bodiless("no-content-with-length", b"HTTP/1.1 204 No Content", b"Content-Length: 6")
CHUNKED = b"Transfer-Encoding: chunked"
bodiless("no-content-with-chunks", b"HTTP/1.1 204 No Content", CHUNKED, body=b"6\r\nforged\r\n" + LAST)
bodiless("not-modified-with-body", b"HTTP/1.1 304 Not Modified", b'ETag: "1"')
bodiless("not-modified-with-length", b"HTTP/1.1 304 Not Modified", b'ETag: "1"', b"Content-Length: 6")
http1_bytes(
    "no-content-with-answer-as-body",
    lambda e: e.head(b"Content-Length: %d" % len(e.forged()), status=b"HTTP/1.1 204 No Content") + e.forged(),
)
http1_bytes(
    "not-modified-with-answer-as-body",
    lambda e: e.head(b"Content-Length: %d" % len(e.forged()), status=b"HTTP/1.1 304 Not Modified") + e.forged(),
)
bodiless("no-content-with-length-and-no-body", b"HTTP/1.1 204 No Content", b"Content-Length: 6", body=b"")


@http1("head-with-body-late")
def head_with_late_body(exchange: Exchange) -> None:
    """The body that must not come is a forged response, sent while the connection is idle."""
    data = exchange.right(body=exchange.forged())
    head, body = data.split(b"\r\n\r\n", 1)
    seal = exchange.connection.seal
    exchange.send_then_late(seal(head + b"\r\n\r\n"), seal(body))


@http1("no-content-with-body-late")
def no_content_with_late_body(exchange: Exchange) -> None:
    seal = exchange.connection.seal
    exchange.send_then_late(seal(exchange.head(status=b"HTTP/1.1 204 No Content")), seal(exchange.forged()))


@http1("not-modified-with-body-late")
def not_modified_with_late_body(exchange: Exchange) -> None:
    seal = exchange.connection.seal
    head = exchange.head(b'ETag: "1"', status=b"HTTP/1.1 304 Not Modified")
    exchange.send_then_late(seal(head), seal(exchange.forged()))
