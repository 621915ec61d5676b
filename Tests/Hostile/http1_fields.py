"""Field lines (RFC 9112, section 5; RFC 9110, section 5)."""

from __future__ import annotations

from http1 import Exchange
from scenarios import http1, http1_bytes


def fields(name: str, *lines: bytes) -> None:
    """Adds a scenario whose response has these field lines and is otherwise right."""
    http1_bytes(name, lambda exchange: exchange.right(*lines))


def caching_fields(name: str, *lines: bytes) -> None:
    """Adds a scenario whose response has these caching fields instead of the usual `Cache-Control: max-age=3600`."""

    def answer(exchange: Exchange) -> bytes:
        first = [b"HTTP/1.1 200 OK", b"X-Answer: %d" % exchange.question]
        length = b"Content-Length: %d" % len(exchange.body)
        return b"\r\n".join([*first, *lines, length, b"", b""]) + exchange.body

    http1_bytes(name, answer)


fields("fold", b"X-Fold: one\r\n two")
fields("fold-by-tab", b"X-Fold: one\r\n\ttwo")
fields("fold-behind-bare-lf", b"X-Fold: one\n two")
# Two combining marks of different classes. To compare strings, Swift sorts each run of such marks. The sort
# takes time quadratic in the length of the run.
MARKS = "\u0301\u0316".encode()
fields("marks", b"X-Odd: x" + MARKS * 20_000)
fields("marks-in-a-coding", b"Content-Encoding: x" + MARKS * 20_000)
fields("marks-in-cache-control", b"Cache-Control: x" + MARKS * 20_000 + b"=1")
# U+1F1E6 is a regional indicator; two of them are a flag. Swift searches long runs of them slowly. netopt
# accepts at most 600 in a row (`SlowText.mostIndicators`).
fields("flags", b"X-Odd: x" + "\U0001f1e6".encode() * 10_000)
fields("flags-in-vary", b"Vary: x" + "\U0001f1e6".encode() * 10_000)
fields("three-hundred-flags", b"X-Odd: x" + "\U0001f1e6".encode() * 600)
fields("marks-in-vary", b"Vary: x" + MARKS * 20_000)
# netopt refuses a text with more than 30 combining marks in a row (`SlowText.mostMarks`). The first value
# has 20 and 32 marks, with a fold between them. The second value has two runs of exactly 30 marks.
fields("marks-in-folds", b"X-Odd: x" + MARKS * 10 + b"\r\n " + MARKS * 16)
fields("thirty-marks-twice", b"X-Odd: x" + MARKS * 15 + b"y" + MARKS * 15)
fields("fold-twice", b"X-Fold: one\r\n two\r\n  three")
fields("fold-of-an-empty-value", b"X-Fold:\r\n one")
fields("fold-of-spaces", b"X-Fold: one\r\n   \r\n two")
fields("fold-that-looks-like-a-field", b"X-Fold: one\r\n X-Answer: 0")
caching_fields("fold-hides-no-store", b"Cache-Control: max-age=3600,\r\n no-store")
caching_fields("fold-hides-no-store-behind-lf", b"Cache-Control: max-age=3600,\n no-store")
caching_fields("fold-by-tab-hides-no-store", b"Cache-Control: max-age=3600,\r\n\tno-store")
caching_fields("fold-hides-vary-of-all", b"Cache-Control: max-age=3600\r\nVary: accept,\r\n *")
http1_bytes(
    "fold-before-the-first-field",
    lambda exchange: b"HTTP/1.1 200 OK\r\n X-Fold: one\r\n" + exchange.right().split(b"\r\n", 1)[1],
)
http1_bytes(
    "fold-in-length", lambda exchange: exchange.head(b"Content-Length:\r\n %d" % len(exchange.body)) + exchange.body
)
http1_bytes(
    "fold-in-transfer-encoding",
    lambda exchange: exchange.head(b"Transfer-Encoding:\r\n chunked") + exchange.chunk() + b"0\r\n\r\n",
)
http1_bytes(
    "fold-hides-second-length",
    lambda exchange: exchange.head(b"Content-Length: %d\r\n , 99" % len(exchange.body)) + exchange.body,
)

fields("cr-in-value", b"X-Odd: one\rtwo")
fields("cr-makes-a-field", b"X-Odd: one\rX-Forged: two")
fields("cr-at-the-end", b"X-Odd: one\r")
fields("cr-before-the-name", b"\rX-Odd: one")
fields("cr-in-name", b"X-O\rdd: one")
fields("nul-in-value", b"X-Odd: one\0two")
fields("nul-at-the-end", b"X-Odd: one\0")
fields("nul-in-name", b"X-O\0dd: one")
fields("bell-in-value", b"X-Odd: one\atwo")
fields("delete-in-value", b"X-Odd: one\x7ftwo")
caching_fields("nul-hides-no-store", b"Cache-Control: max-age=3600\0, no-store")
caching_fields("cr-hides-no-store", b"Cache-Control: max-age=3600\r, no-store")

fields("field-like-a-status-line", b"HTTP/1.1 404 Not Found")
fields("field-like-a-status-line-with-colon", b"HTTP/1.1 404: Not Found")
fields("field-like-a-status-line-of-http2", b"HTTP/2 404 Not: Found")
fields("field-like-a-status-line-of-101", b"HTTP/1.1 101 Switching: Protocols")
fields("space-before-colon", b"X-Odd : one")
fields("tab-before-colon", b"X-Odd\t: one")
fields("space-in-name", b"X Odd: one")
fields("empty-name", b": one")
fields("no-colon", b"garbage")
fields("quotes-in-name", b'"X-Odd": one')
fields("8-bit-value", b"X-Odd: caf\xe9")
fields("8-bit-name", b"X-Odd\xe9: one")
fields("utf-8-value", b"X-Odd: caf\xc3\xa9")
fields("empty-value", b"X-Odd:")
fields("long-value", b"X-Odd: " + b"a" * 60_000)
fields("pseudo-field", b":status: 404")
http1_bytes("bare-lf-everywhere", lambda exchange: exchange.right().replace(b"\r\n", b"\n"))
http1_bytes("bare-lf-at-the-end-of-the-head", lambda exchange: exchange.right().replace(b"\r\n\r\n", b"\r\n\n"))
http1_bytes("cr-cr-lf-at-line-ends", lambda exchange: exchange.right().replace(b"\r\n", b"\r\r\n"), then="close")
http1_bytes("bare-cr-everywhere", lambda exchange: exchange.right().replace(b"\r\n", b"\r"), then="close")
http1_bytes(
    "space-line-ends-the-head", lambda exchange: exchange.right().replace(b"\r\n\r\n", b"\r\n \r\n"), then="close"
)
http1_bytes(
    "space-before-colon-of-length",
    lambda exchange: exchange.head(b"Content-Length : %d" % len(exchange.body)) + exchange.body,
    then="close",
)
http1_bytes(
    "space-before-colon-of-transfer-encoding",
    lambda exchange: exchange.head(b"Transfer-Encoding : chunked") + exchange.chunk() + b"0\r\n\r\n",
    then="close",
)
caching_fields("space-before-colon-hides-no-store", b"Cache-Control: max-age=3600", b"Cache-Control : no-store")


@http1("head-in-pieces-of-a-byte")
def pieces(exchange: Exchange) -> None:
    for byte in exchange.right():
        exchange.send(bytes([byte]))
