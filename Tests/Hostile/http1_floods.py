"""Endless responses, and very long ones."""

from __future__ import annotations

import time

from connection import Gone
from http1 import Exchange
from scenarios import http1

# A status line.
OK = b"HTTP/1.1 200 OK\r\n"


def flood(name: str, first: bytes, piece: bytes, most: int = 1 << 30) -> None:
    """Adds a scenario whose response begins with `first` and repeats `piece`, up to `most` bytes."""

    @http1(name)
    def play(exchange: Exchange) -> None:
        exchange.flood(piece, first=first, most=most)


# The head of a chunked response.
CHUNKED = OK + b"Cache-Control: max-age=3600\r\nTransfer-Encoding: chunked\r\n\r\n"
flood("flood-of-fields", OK, b"X-Field: value of a field\r\n")
flood("flood-of-short-fields", OK, b"a:\r\n")
flood("flood-of-one-name", OK, b"aaaaaaaaaaaaaaaa")
flood("flood-of-one-value", OK + b"X-Odd: ", b"aaaaaaaaaaaaaaaa")
flood("flood-of-folds", OK + b"X-Odd: a\r\n", b" aaaaaaaaaaaaaa\r\n")
flood("flood-of-spaces-in-a-value", OK + b"X-Odd:", b"                ")
flood("flood-in-the-status-line", b"HTTP/1.1 200 ", b"aaaaaaaaaaaaaaaa")
flood("flood-before-the-status-line", b"", b"\r\n")
flood("flood-of-zeros", b"", bytes(16))
flood("flood-of-continue", b"", b"HTTP/1.1 100 Continue\r\n\r\n")
flood("flood-of-hints", b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n")
flood("flood-in-one-1xx", b"HTTP/1.1 103 Early Hints\r\n", b"Link: </a>; rel=preload\r\n")
flood("flood-of-trailers", CHUNKED + b"5\r\nhello\r\n0\r\n", b"X-Trailer: value of a trailer\r\n")
flood("flood-in-one-trailer", CHUNKED + b"5\r\nhello\r\n0\r\nX-Trailer: ", b"aaaaaaaaaaaaaaaa")
flood("flood-in-a-chunk-extension", CHUNKED + b"5;", b"aaaaaaaaaaaaaaaa")
flood("flood-in-a-chunk-size", CHUNKED, b"0000000000000000")


@http1("field-of-a-megabyte")
def field_of_a_megabyte(exchange: Exchange) -> None:
    exchange.send(exchange.right(b"X-Odd: " + b"a" * (1 << 20)))


@http1("field-of-200-kilobytes")
def field_of_200_kilobytes(exchange: Exchange) -> None:
    exchange.send(exchange.right(b"X-Odd: " + b"a" * 200_000))


@http1("a-hundred-thousand-fields")
def many_fields(exchange: Exchange) -> None:
    exchange.send(exchange.right(*[b"X-%d: a" % number for number in range(100_000)]))


@http1("a-hundred-thousand-trailers")
def many_trailers(exchange: Exchange) -> None:
    lines = b"".join(b"X-%d: a\r\n" % number for number in range(100_000))
    exchange.send(exchange.chunked(exchange.chunk(), b"0\r\n", lines, b"\r\n"))


@http1("continue-every-10-ms")
def slow_continue(exchange: Exchange) -> None:
    try:
        for _ in range(500):
            exchange.send(b"HTTP/1.1 100 Continue\r\n\r\n")
            time.sleep(0.01)
    except Gone:
        pass


@http1("a-byte-of-the-head-every-10-ms")
def slow_head(exchange: Exchange) -> None:
    exchange.send(b"HTTP/1.1 200 OK\r\nX-Odd: ")
    for _ in range(500):
        exchange.send(b"a")
        time.sleep(0.01)


@http1("body-without-end")
def endless_body(exchange: Exchange) -> None:
    exchange.flood(bytes(65536), first=exchange.head())


@http1("chunks-of-a-byte-without-end")
def endless_chunks(exchange: Exchange) -> None:
    exchange.flood(b"1\r\na\r\n", first=exchange.chunked())
