"""Bytes after a response. A client must not take them for the next response (RFC 9112, section 9.2)."""

from __future__ import annotations

import socket

from connection import Gone
from http1 import Exchange
from scenarios import http1, http1_bytes

http1_bytes("extra-answer-at-once", lambda e: e.right() + e.forged())
http1_bytes("extra-answer-behind-chunks", lambda e: e.chunked(e.chunk(), b"0\r\n\r\n") + e.forged())
http1_bytes("extra-answer-behind-connection-close", lambda e: e.right(b"Connection: close") + e.forged())
http1_bytes("extra-answer-behind-an-empty-one", lambda e: e.right(body=b"") + e.forged())
http1_bytes("extra-byte-at-once", lambda e: e.right() + b"x")
http1_bytes("extra-line-end-at-once", lambda e: e.right() + b"\r\n")
http1_bytes("extra-continue-at-once", lambda e: e.right() + b"HTTP/1.1 100 Continue\r\n\r\n")
http1_bytes("half-an-extra-answer-at-once", lambda e: e.right() + e.forged()[:30])


def pieces(name: str, body: bytes | None) -> None:
    """Adds a scenario that sends the right response together with the first 30 bytes of a forged response.

    The rest of the forged response comes while the connection is idle. `body` is the body of the right
    response; `None` stands for the usual body.
    """

    @http1(name)
    def play(exchange: Exchange) -> None:
        forged = exchange.forged()
        seal = exchange.connection.seal
        exchange.send_then_late(seal(exchange.right(body=body) + forged[:30]), seal(forged[30:]))


pieces("extra-answer-in-pieces", None)
pieces("extra-answer-in-pieces-behind-an-empty-one", b"")


def late(name: str, make: str, *, then_close: bool = False, tls: int = 3) -> None:
    """Adds a scenario whose response is followed by further data while the connection is idle.

    `make` names the data. With `then_close`, a FIN follows the data. `tls` is 2 for TLS 1.2, 3 for TLS 1.3.
    """

    @http1(name, tls=tls)
    def play(exchange: Exchange) -> None:
        seal = exchange.connection.seal
        right = seal(exchange.right())
        timeout = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        half = len(exchange.forged()) // 2
        data = {
            "answer": lambda: seal(exchange.forged()),
            "two-records": lambda: seal(exchange.forged()[:half]) + seal(exchange.forged()[half:]),
            "byte": lambda: seal(b"H"),
            "line-end": lambda: seal(b"\r\n"),
            "timeout": lambda: seal(timeout),
            "continue": lambda: seal(b"HTTP/1.1 100 Continue\r\n\r\n"),
            "head": lambda: seal(exchange.forged()[:-13]),
            "garbage": lambda: seal(b"garbage\r\n" * 1000),
            "half-record": lambda: seal(exchange.forged())[:-4],
            "record-head": lambda: seal(exchange.forged())[:5],
            "false-record": lambda: b"\x17\x03\x03\x00\x20" + bytes(32),
            "clear-text": lambda: exchange.forged(),
            "alert": lambda: b"\x15\x03\x03\x00\x02\x02\x28",
            "close-notify": lambda: exchange.connection.sealed_close_notify(),
            "nothing": lambda: b"",
        }[make]()
        exchange.send_then_late(right, data, then_close=then_close)


late("extra-answer-late", "answer")
late("extra-byte-late", "byte")
late("extra-line-end-late", "line-end")
late("extra-continue-late", "continue")
late("extra-head-late", "head")
late("extra-garbage-late", "garbage")
late("request-timeout-late", "timeout", then_close=True)
late("request-timeout-late-and-open", "timeout")
late("end-late", "nothing", then_close=True)

# The scenarios whose names begin with "tls" need TLS, so the test sends their requests by https.
for version in (2, 3):
    late(f"tls1{version}-extra-answer-late", "answer", tls=version)
    late(f"tls1{version}-extra-answer-in-two-records-late", "two-records", tls=version)
    late(f"tls1{version}-close-notify-late", "close-notify", tls=version)
late("tls-half-a-record-late", "half-record")
late("tls-head-of-a-record-late", "record-head")
late("tls-false-record-late", "false-record")
late("tls-clear-text-late", "clear-text")
late("tls-clear-alert-late", "alert")


# The test sends requests that expect "100 Continue" before their body. The server sends the final response at
# once.
http1_bytes("answer-in-the-place-of-continue", lambda e: e.right())
http1_bytes("answer-417-in-the-place-of-continue", lambda e: e.right(status=b"HTTP/1.1 417 Expectation Failed"))


@http1("tls-answer-in-400-records")
def many_records(exchange: Exchange) -> None:
    """A response with a TLS record for each of its 400 chunks, sent at once.

    A proxy that decrypts the records may put the data of all into one record.
    """
    seal = exchange.connection.seal
    body = exchange.body.ljust(800)
    data = [seal(exchange.head(b"Transfer-Encoding: chunked"))]
    data += [seal(exchange.chunk(body[at : at + 2])) for at in range(0, 800, 2)]
    exchange.connection.send_raw(b"".join(data) + seal(b"0\r\n\r\n"))


for version in (2, 3):

    @http1(f"tls1{version}-extra-answer-in-its-own-record", tls=version)
    def own_record(exchange: Exchange) -> None:
        """A response and a forged one in two TLS records, sent at once.

        A proxy that decrypts them may put the data of both into one record.
        """
        seal = exchange.connection.seal
        exchange.connection.send_raw(seal(exchange.right()) + seal(exchange.forged()))


@http1("tls-rest-of-a-record-later")
def rest_of_record(exchange: Exchange) -> None:
    """Sends the response together with the first 20 bytes of a record that has a forged response.

    The rest of the record comes while the connection is idle.
    """
    right = exchange.connection.seal(exchange.right())
    forged = exchange.connection.seal(exchange.forged())
    exchange.send_then_late(right + forged[:20], forged[20:])


def rest_with_the_next_request(name: str, ahead: int) -> None:
    """Adds a scenario whose response is followed by a record with a forged response.

    The first `ahead` bytes of the record come while the connection is idle. The rest comes when the next
    request has come. A negative `ahead` counts from the end of the record.
    """

    @http1(name)
    def play(exchange: Exchange) -> None:
        right = exchange.connection.seal(exchange.right())
        forged = exchange.connection.seal(exchange.forged())
        exchange.send_then_late(right, forged[:ahead])
        try:
            if exchange.connection.sock.recv(1, socket.MSG_PEEK):
                exchange.connection.send_raw(forged[ahead:])
        except (Gone, OSError):
            pass


for offset in (1, 4, 5, 6, 30):
    rest_with_the_next_request(f"tls-record-split-at-{offset}", offset)
rest_with_the_next_request("tls-record-split-at-the-last-byte", -1)
