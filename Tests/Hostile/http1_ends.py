"""Connections that end too early, or in a wrong way (RFC 9112, sections 8 and 9.8)."""

from __future__ import annotations

from connection import Connection
from http1 import Exchange
from scenarios import Scenario, add, http1, http1_bytes

http1_bytes("end-before-the-head", lambda exchange: b"", then="close")
http1_bytes("reset-before-the-head", lambda exchange: b"", then="reset")
http1_bytes("end-in-the-version", lambda exchange: b"HTT", then="close")
http1_bytes("end-in-the-status-line", lambda exchange: b"HTTP/1.1 20", then="close")
http1_bytes("end-behind-the-status-line", lambda exchange: b"HTTP/1.1 200 OK\r\n", then="close")
http1_bytes("end-in-a-name", lambda exchange: exchange.head(b"X-Odd")[:-4], then="close")
http1_bytes("end-behind-a-line", lambda exchange: exchange.head()[:-2], then="close")
http1_bytes("end-in-the-last-line-end", lambda exchange: exchange.head()[:-1], then="close")
http1_bytes("end-behind-length", lambda exchange: exchange.head(b"Content-Length: 0")[:-2], then="close")
http1_bytes("reset-in-the-status-line", lambda exchange: b"HTTP/1.1 20", then="reset")
http1_bytes("reset-behind-a-line", lambda exchange: exchange.head()[:-2], then="reset")
http1_bytes("end-in-a-1xx", lambda exchange: b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n", then="close")
http1_bytes("end-of-a-body-without-length", lambda exchange: exchange.head() + exchange.body, then="close")
http1_bytes("end-of-an-empty-body-without-length", lambda exchange: exchange.head(), then="close")
http1_bytes("end-of-a-body-of-http-1-0", lambda e: e.head(status=b"HTTP/1.0 200 OK") + e.body, then="close")
http1_bytes("end-in-a-body-with-length", lambda e: e.right()[:-3], then="close")
http1_bytes("end-before-a-body-with-length", lambda e: e.right()[: -len(e.body)], then="close")
http1_bytes("reset-in-a-body-with-length", lambda e: e.right()[:-3], then="reset")
http1_bytes("silence-in-the-head", lambda exchange: exchange.head()[:-4])
http1_bytes("silence-in-a-body-with-length", lambda exchange: exchange.right()[:-3])
http1_bytes("silence-in-a-body-without-length", lambda exchange: exchange.head() + exchange.body)
http1_bytes("silence-in-a-chunk", lambda exchange: exchange.chunked(exchange.chunk()))
http1_bytes("silence-before-the-head", lambda exchange: b"")
http1_bytes("connection-close-and-whole", lambda e: e.right(b"Connection: close"), then="close")
http1_bytes("keep-alive-and-the-end", lambda e: e.right(b"Connection: keep-alive"), then="close")


@http1("reset-in-a-body-without-length")
def reset_in_body(exchange: Exchange) -> None:
    # When the reset comes, the client may lose bytes that it has not read, even the head. So the call may
    # fail before or after it returns the response; the test accepts both.
    exchange.send(exchange.head() + exchange.body)
    exchange.reset()


# The scenarios from here to `tls_reset` need TLS, so the test sends their requests by https.


def tls_end(name: str, make: str, *, tls: int) -> None:
    """Adds a scenario whose response is followed by a FIN without close_notify (RFC 8446, section 6.1).

    `make` names the response. `tls` is 2 for TLS 1.2 and 3 for TLS 1.3.
    """

    @http1(name, tls=tls)
    def play(exchange: Exchange) -> None:
        data = {
            "no-length": exchange.head() + exchange.body,
            "empty": exchange.head(),
            "http-1-0": exchange.head(status=b"HTTP/1.0 200 OK") + exchange.body,
            "length": exchange.right(b"Connection: close"),
            "length-cut": exchange.right()[:-3],
            "chunked": exchange.chunked(exchange.chunk(), b"0\r\n\r\n"),
            "chunked-cut": exchange.chunked(exchange.chunk()),
            "head": exchange.head()[:-2],
            "nothing": b"",
        }[make]
        if data:
            exchange.send(data)
        exchange.connection.cut()


for kind in ("no-length", "empty", "http-1-0", "length", "length-cut", "chunked", "chunked-cut", "head", "nothing"):
    for version in (2, 3):
        tls_end(f"tls1{version}-without-close-notify-{kind}", kind, tls=version)


def tls_alert(name: str, *, tls: int, fatal: bool, cut: bool = False) -> None:
    """Adds a scenario whose response has a body without length that ends with a TLS alert and a FIN.

    The alert is fatal, or it is close_notify. With `cut`, its last 5 bytes are missing.
    """

    @http1(name, tls=tls)
    def play(exchange: Exchange) -> None:
        exchange.send(exchange.head() + exchange.body)
        connection = exchange.connection
        alert = connection.sealed_alert() if fatal else connection.sealed_close_notify()
        connection.send_raw(alert[:-5] if cut else alert)
        connection.cut()


for version in (2, 3):
    tls_alert(f"tls1{version}-close-notify-no-length", tls=version, fatal=False)
    tls_alert(f"tls1{version}-fatal-alert-no-length", tls=version, fatal=True)
    tls_alert(f"tls1{version}-half-a-close-notify-no-length", tls=version, fatal=False, cut=True)


@http1("tls-close-notify-and-open")
def close_notify_and_open(exchange: Exchange) -> None:
    """close_notify ends the body; the TCP connection stays open."""
    exchange.send(exchange.head() + exchange.body)
    exchange.connection.send_raw(exchange.connection.sealed_close_notify())
    exchange.connection.receive()


@http1("tls-close-notify-in-a-body-with-length")
def close_notify_in_body(exchange: Exchange) -> None:
    exchange.send(exchange.right()[:-3])
    exchange.close()


@http1("tls-close-notify-in-the-head")
def close_notify_in_head(exchange: Exchange) -> None:
    exchange.send(exchange.head()[:-2])
    exchange.close()


@http1("tls-record-cut")
def record_cut(exchange: Exchange) -> None:
    """A FIN comes within a TLS record of a body without length."""
    exchange.send(exchange.head() + exchange.body)
    exchange.connection.send_raw(exchange.connection.seal(b"more of it")[:-3])
    exchange.connection.cut()


@http1("tls-reset-no-length")
def tls_reset(exchange: Exchange) -> None:
    exchange.send(exchange.head() + exchange.body)
    exchange.reset()


@http1("reset-behind-the-head", is_early=True)
def reset_behind_the_head(exchange: Exchange) -> None:
    """The server knows the request, and resets the connection before the body has come."""
    exchange.reset()


def tunnel_without_end(connection: Connection) -> None:
    """Refuses a tunnel by a response whose trailers never end."""
    connection.send(b"HTTP/1.1 407 No\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n")
    while True:
        connection.send(b"a: b\r\n" * 10_000)


def cut(exchange: Exchange) -> None:
    exchange.connection.cut()


add(Scenario("second-tunnel-without-end", on_request=cut, on_second_tunnel=tunnel_without_end))
