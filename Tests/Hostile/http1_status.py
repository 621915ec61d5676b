"""Scenarios with odd status lines, and with interim responses (RFC 9112, section 4; RFC 9110, section 15)."""

from __future__ import annotations

import socket

from connection import Gone
from http1 import Exchange
from scenarios import http1, http1_bytes


def line(name: str, status: bytes, then: str = "wait") -> None:
    """Adds a scenario whose response has this status line and is otherwise right.

    `then` says what follows the response (`http1_bytes`).
    """
    http1_bytes(name, lambda exchange: exchange.right(status=status), then=then)


line("status-099", b"HTTP/1.1 099 Odd")
line("status-000", b"HTTP/1.1 000 Odd")
line("status-1000", b"HTTP/1.1 1000 Odd")
line("status-20", b"HTTP/1.1 20 Odd")
line("status-2-space-0", b"HTTP/1.1 2 0 Odd")
line("status-minus", b"HTTP/1.1 -200 Odd")
line("status-plus", b"HTTP/1.1 +200 Odd")
line("status-letters", b"HTTP/1.1 2OO Odd")
line("status-hex", b"HTTP/1.1 0xc8 Odd")
line("status-missing", b"HTTP/1.1")
line("status-missing-with-space", b"HTTP/1.1 ")
line("status-600", b"HTTP/1.1 600 Odd")
line("status-999", b"HTTP/1.1 999 Odd")
line("status-299", b"HTTP/1.1 299 Odd")
line("status-no-reason", b"HTTP/1.1 200 ")
line("status-no-space-behind", b"HTTP/1.1 200")
line("status-glued-to-reason", b"HTTP/1.1 200OK")
line("status-two-spaces", b"HTTP/1.1  200 OK")
line("status-tab", b"HTTP/1.1\t200 OK")
line("status-nul-in-reason", b"HTTP/1.1 200 O\0K")
line("status-cr-in-reason", b"HTTP/1.1 200 O\rK")
line("status-8-bit-reason", b"HTTP/1.1 200 \xc3\x9cber\xff")
line("status-long-reason", b"HTTP/1.1 200 " + b"a" * (1 << 20))

line("version-2", b"HTTP/2 200 OK")
line("version-2-0", b"HTTP/2.0 200 OK")
line("version-3", b"HTTP/3 200 OK")
line("version-2-no-reason", b"HTTP/2 200")
line("version-3-no-reason", b"HTTP/3 200")
line("version-0-9", b"HTTP/0.9 200 OK")
line("version-1", b"HTTP/1 200 OK")
line("version-1-2", b"HTTP/1.2 200 OK")
line("version-1-10", b"HTTP/1.10 200 OK")
line("version-11-1", b"HTTP/11.1 200 OK")
line("version-comma", b"HTTP/1,1 200 OK")
line("version-missing", b"HTTP 200 OK")
line("version-lower-case", b"http/1.1 200 OK")
line("version-icy", b"ICY 200 OK")
line("version-rtsp", b"RTSP/1.0 200 OK")
line("version-space-before", b" HTTP/1.1 200 OK")
line("version-empty-line-before", b"\r\nHTTP/1.1 200 OK")
line("version-nul-before", b"\0HTTP/1.1 200 OK")
line("version-byte-order-mark", b"\xef\xbb\xbfHTTP/1.1 200 OK")

http1_bytes("no-head", lambda exchange: b"<html>" + exchange.body + b"</html>\r\n\r\n", then="close")
http1_bytes("no-head-and-silence", lambda exchange: b"<html>" + exchange.body)
http1_bytes("frames-of-http2", lambda exchange: bytes.fromhex("000006040000000000000300000064" * 4))
http1_bytes("record-of-tls", lambda exchange: b"\x15\x03\x03\x00\x02\x02\x28", then="close")
http1_bytes("a-request-comes-back", lambda exchange: b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")

SWITCH = b"HTTP/1.1 101 Switching Protocols"
http1_bytes("switching-unasked", lambda e: e.right(b"Upgrade: odd", b"Connection: Upgrade", status=SWITCH))
http1_bytes("switching-to-h2c", lambda exchange: exchange.head(b"Upgrade: h2c", b"Connection: Upgrade", status=SWITCH))
http1_bytes("switching-without-upgrade", lambda exchange: exchange.head(status=SWITCH), then="close")
http1_bytes("switching-then-an-answer", lambda exchange: exchange.head(status=SWITCH) + exchange.right())

HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\nCache-Control: no-store\r\nX-Hint: 1\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
http1_bytes("hints-before-the-answer", lambda exchange: HINTS + exchange.right())
http1_bytes("continue-before-the-answer", lambda exchange: CONTINUE + exchange.right())
http1_bytes("many-1xx-before-the-answer", lambda exchange: (CONTINUE + HINTS) * 5 + exchange.right())
http1_bytes("status-199-before-the-answer", lambda exchange: b"HTTP/1.1 199 Odd\r\n\r\n" + exchange.right())
http1_bytes("only-1xx-then-the-end", lambda exchange: CONTINUE + HINTS, then="close")
http1_bytes(
    "hints-with-a-body",
    lambda exchange: b"HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n\r\nhello" + exchange.right(),
)


@http1("hints-in-pieces-of-a-byte")
def hints_in_pieces(exchange: Exchange) -> None:
    """Sends an interim response and the right response, each byte on its own."""
    for byte in HINTS + exchange.right():
        exchange.send(bytes([byte]))


@http1("urgent-byte-before")
def urgent_byte(exchange: Exchange) -> None:
    """Sends a byte of TCP urgent data before the right response.

    Urgent data is a part of the stream (RFC 6093). Linux leaves it out of the stream, unless the socket has
    SO_OOBINLINE.
    """
    try:
        exchange.connection.sock.send(b"u", socket.MSG_OOB)
    except OSError as error:
        raise Gone from error
    exchange.connection.send(exchange.right())
