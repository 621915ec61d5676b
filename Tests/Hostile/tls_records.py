"""Scenarios with TLS handshakes that are cut, damaged or false, and with odd records (RFC 8446, RFC 5246)."""

from __future__ import annotations

from collections.abc import Callable

import http1
from connection import Gone, Handshake, TLSConnection
from http1 import Exchange
from scenarios import handshake, http1 as answers

# The header of a record with an unencrypted alert. The level and the description follow.
ALERT = b"\x15\x03\x03\x00\x02"


def cleartext(name: str, data: bytes, *, then: str = "close") -> None:
    """Adds a scenario in which the server sends these bytes instead of its first flight of the handshake.

    `then` says what the server does next: "close" or "reset" the connection, or "silence".
    """

    @handshake(name)
    def play(begun: Handshake) -> None:
        begun.tcp.send_raw(data)
        if then == "close":
            begun.tcp.cut()
        elif then == "reset":
            begun.tcp.reset()
        else:
            begun.tcp.receive_raw()


cleartext("handshake-end-at-once", b"")
cleartext("handshake-reset-at-once", b"", then="reset")
cleartext("handshake-silence", b"", then="silence")
cleartext("handshake-is-http", b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
cleartext("handshake-is-http-and-open", b"HTTP/1.1 400 Bad Request\r\n\r\n", then="silence")
cleartext("handshake-is-ssh", b"SSH-2.0-OpenSSH_9.2\r\n", then="silence")
cleartext("handshake-is-zeros", bytes(1000))
cleartext("handshake-failure-alert", ALERT + b"\x02\x28")
cleartext("handshake-internal-error-alert", ALERT + b"\x02\x50")
cleartext("handshake-no-application-protocol-alert", ALERT + b"\x02\x78")
cleartext("handshake-close-notify", ALERT + b"\x01\x00")
cleartext("handshake-odd-alert", ALERT + b"\x63\x63")
cleartext("handshake-alert-cut", ALERT + b"\x02")
cleartext("handshake-warnings-only", (ALERT + b"\x01\x70") * 1000)
cleartext("handshake-record-over-length", b"\x16\x03\x03\xff\xff" + bytes(65535))
cleartext("handshake-record-empty", b"\x16\x03\x03\x00\x00" * 100)
cleartext("handshake-record-of-ssl-2", b"\x80\x2e\x01\x03\x01" + bytes(60))
cleartext("handshake-record-of-odd-type", b"\x63\x03\x03\x00\x05hello")
cleartext("handshake-data-first", b"\x17\x03\x03\x00\x05hello")
cleartext("handshake-change-cipher-spec-first", b"\x14\x03\x03\x00\x01\x01" * 40)
cleartext("handshake-hello-request", b"\x16\x03\x03\x00\x04\x00\x00\x00\x00" * 10)
cleartext("handshake-hello-requests-without-end", b"\x16\x03\x03\x00\x04\x00\x00\x00\x00" * 3_000_000)
cleartext("handshake-finished-first", b"\x16\x03\x03\x00\x10\x14\x00\x00\x0c" + bytes(12))
cleartext("handshake-message-of-16-megabytes", b"\x16\x03\x03\x00\x10\x02\xff\xff\xff" + bytes(12))


@handshake("handshake-hello-comes-back")
def hello_comes_back(begun: Handshake) -> None:
    begun.tcp.send_raw(begun.hello)
    begun.tcp.cut()


def server_hello(session: bytes, suite: bytes = b"\xc0\x2f") -> bytes:
    """A ServerHello of TLS 1.2 with this session ID. Its only extension is renegotiation_info."""
    body = b"\x03\x03" + b"\x01" * 32 + bytes([len(session)]) + session + suite + b"\x00\x00\x05\xff\x01\x00\x01\x00"
    message = b"\x02" + len(body).to_bytes(3, "big") + body
    return b"\x16\x03\x03" + len(message).to_bytes(2, "big") + message


@handshake("handshake-certificate-without-end", tls=2)
def certificate_without_end(begun: Handshake) -> None:
    """Sends a Certificate message that announces 16 MB, and then four times as many bytes."""
    begun.tcp.send_raw(server_hello(b"") + b"\x16\x03\x03\x00\x0a\x0b\xff\xff\xff\xff\xff\xfc\xff\xff\xf9")
    for _ in range(4000):
        begun.tcp.send_raw(b"\x16\x03\x03\x40\x00" + bytes(16_384))


@handshake("handshake-hello-with-suite-not-offered", tls=2)
def suite_not_offered(begun: Handshake) -> None:
    begun.tcp.send_raw(server_hello(b"", b"\x00\x01"))
    begun.tcp.cut()


def cut(name: str, count: Callable[[bytes], int], *, tls: int, flight: int = 0, then: str = "close") -> None:
    """Adds a scenario whose handshake breaks off within a flight of the server.

    `flight` is the number of the flight, from 0. `count` gets the bytes of the flight, and returns how many
    of them are sent. `then` says what the server does next: "close" or "reset" the connection, or "silence".
    """

    @handshake(name, tls=tls)
    def play(begun: Handshake) -> None:
        connection = begun.tls()

        def pass_on(number: int, data: bytes) -> bytes | None:
            if number != flight:
                return data
            connection.send_raw(data[: count(data)])
            if then == "close":
                connection.cut()
            elif then == "reset":
                connection.reset()
            else:
                connection.receive_raw()
            raise Gone

        connection.handshake(pass_on)


def behind(records: int) -> Callable[[bytes], int]:
    """Returns a function that computes the length of the first `records` records of a flight, in bytes."""

    def count(data: bytes) -> int:
        at = 0
        for _ in range(records):
            at += 5 + int.from_bytes(data[at + 3 : at + 5], "big")
        return min(at, len(data))

    return count


for version in (2, 3):
    prefix = f"tls1{version}"
    cut(f"{prefix}-cut-in-the-first-record", lambda data: 7, tls=version)
    cut(f"{prefix}-cut-behind-the-hello", behind(1), tls=version)
    cut(f"{prefix}-cut-behind-two-records", behind(2), tls=version)
    cut(f"{prefix}-cut-behind-three-records", behind(3), tls=version)
    cut(f"{prefix}-cut-before-the-last-byte", lambda data: len(data) - 1, tls=version)
    cut(f"{prefix}-reset-behind-the-hello", behind(1), tls=version, then="reset")
    cut(f"{prefix}-silence-behind-the-hello", behind(1), tls=version, then="silence")
# The second flight of TLS 1.2 has the server's Finished.
cut("tls12-cut-before-finished", lambda data: 0, tls=2, flight=1)
cut("tls12-cut-in-finished", lambda data: len(data) - 5, tls=2, flight=1)
cut("tls12-reset-before-finished", lambda data: 0, tls=2, flight=1, then="reset")


def damaged(name: str, change: Callable[[bytes], bytes], *, tls: int, flight: int = 0) -> None:
    """Adds a scenario in which `change` changes one flight of the server. `flight` is its number, from 0."""

    @handshake(name, tls=tls)
    def play(begun: Handshake) -> None:
        connection = begun.tls()
        connection.handshake(lambda number, data: change(data) if number == flight else data)
        http1.serve(connection)


def flipped(at: int) -> Callable[[bytes], bytes]:
    """Returns a function that changes the lowest bit of one byte."""
    return lambda data: data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


damaged("tls13-random-changed", flipped(20), tls=3)
damaged("tls13-last-byte-changed", lambda data: data[:-1] + bytes([data[-1] ^ 1]), tls=3)
damaged("tls13-a-byte-of-the-certificate-changed", flipped(300), tls=3)
damaged("tls12-random-changed", flipped(20), tls=2)
damaged("tls12-a-byte-of-the-certificate-changed", flipped(300), tls=2)
damaged("tls12-finished-changed", lambda data: data[:-1] + bytes([data[-1] ^ 1]), tls=2, flight=1)
damaged("tls13-hello-twice", lambda data: data[: behind(1)(data)] + data, tls=3)
damaged("tls13-alert-in-the-first-flight", lambda data: data[: behind(1)(data)] + ALERT + b"\x02\x50", tls=3)


@handshake("tls12-answer-behind-finished", tls=2)
def answer_behind_finished(begun: Handshake) -> None:
    """Sends a forged response with the handshake's last flight, before the client can have sent a request."""
    connection = begun.tls()
    held: list[bytes] = []

    def pass_on(number: int, data: bytes) -> bytes | None:
        if number == 0:
            return data
        held.append(data)
        return None

    connection.handshake(pass_on)
    body = b"forged answer"
    head = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nX-Answer: 0\r\nContent-Length: %d\r\n\r\n" % len(body)
    connection.send_raw(b"".join(held) + connection.seal(head + body))
    http1.serve(connection)


@handshake("tls13-tickets-late")
def tickets_late(begun: Handshake) -> None:
    """Sends the session tickets just before the first response, and not at the end of the handshake."""
    connection = begun.tls()
    held: list[bytes] = []

    def pass_on(number: int, data: bytes) -> bytes | None:
        if number == 0:
            return data
        held.append(data)
        return None

    connection.handshake(pass_on)
    request = connection.receive()
    connection.unread(request)
    connection.send_raw(b"".join(held))
    http1.serve(connection)


@handshake("tls13-tickets-in-pieces-of-a-byte")
def tickets_in_pieces(begun: Handshake) -> None:
    """Sends the session tickets in pieces of a byte."""
    connection = begun.tls()

    def pass_on(number: int, data: bytes) -> bytes | None:
        if number == 0:
            return data
        for byte in data:
            connection.send_raw(bytes([byte]))
        return None

    connection.handshake(pass_on)
    http1.serve(connection)


@handshake("tls13-three-thousand-tickets", tickets=3000)
def many_tickets(begun: Handshake) -> None:
    connection = begun.tls()
    connection.handshake()
    http1.serve(connection)


@handshake("tls13-no-tickets", tickets=0)
def no_tickets(begun: Handshake) -> None:
    connection = begun.tls()
    connection.handshake()
    http1.serve(connection)


def records(name: str, make: Callable[[TLSConnection], bytes], *, where: str, tls: int = 3) -> None:
    """Adds a scenario with raw TCP bytes, outside the TLS stream, before the response or within its body.

    `make` makes these bytes. `where` is "before" or "within".
    """

    @answers(name, tls=tls)
    def play(exchange: Exchange) -> None:
        connection = exchange.connection
        assert isinstance(connection, TLSConnection)
        answer = exchange.right()
        at = 0 if where == "before" else len(answer) - 3
        if at:
            connection.send(answer[:at])
        connection.send_raw(make(connection))
        connection.send(answer[at:])


# By the names of scenarios, bytes that are sent as they are, below TLS.
BELOW: dict[str, Callable[[TLSConnection], bytes]] = {
    "record-over-length": lambda connection: b"\x17\x03\x03\x48\x01" + bytes(0x4801),
    "record-of-noise": lambda connection: b"\x17\x03\x03\x00\x40" + bytes(range(64)),
    "record-too-short": lambda connection: b"\x17\x03\x03\x00\x01\x00",
    "record-empty": lambda connection: b"\x17\x03\x03\x00\x00",
    "record-of-odd-type": lambda connection: b"\x63\x03\x03\x00\x05hello",
    "record-of-odd-version": lambda connection: b"\x17\x09\x09\x00\x05hello",
    "clear-text": lambda connection: b"HTTP/1.1 404 Not Found\r\n\r\n",
    "clear-alert": lambda connection: ALERT + b"\x02\x28",
    "clear-close-notify": lambda connection: ALERT + b"\x01\x00",
    "clear-handshake": lambda connection: b"\x16\x03\x03\x00\x04\x00\x00\x00\x00",
    "change-cipher-spec": lambda connection: b"\x14\x03\x03\x00\x01\x01",
    "fatal-alert": lambda connection: connection.sealed_alert(),
}
for kind, make in BELOW.items():
    records(f"tls12-within-{kind}", make, where="within", tls=2)
    records(f"tls13-within-{kind}", make, where="within")
    records(f"tls13-before-{kind}", make, where="before")


def record_order(name: str, change: Callable[[list[bytes]], list[bytes]]) -> None:
    """Adds a scenario whose response has three TLS records.

    `change` gets the encrypted records, and returns what is sent in their place.
    """

    @answers(name)
    def play(exchange: Exchange) -> None:
        answer = exchange.right()
        third = len(answer) // 3
        parts = [answer[:third], answer[third : 2 * third], answer[2 * third :]]
        sealed = [exchange.connection.seal(part) for part in parts]
        exchange.connection.send_raw(b"".join(change(sealed)))


record_order("records-in-a-wrong-order", lambda sealed: [sealed[1], sealed[0], sealed[2]])
record_order("record-twice", lambda sealed: [sealed[0], sealed[1], sealed[1], sealed[2]])
record_order("record-missing", lambda sealed: [sealed[0], sealed[2]])
record_order("record-damaged", lambda sealed: [sealed[0], sealed[1][:-1] + bytes([sealed[1][-1] ^ 1]), sealed[2]])
record_order("record-extended", lambda sealed: [sealed[0], sealed[1] + b"x", sealed[2]])


@answers("records-in-pieces-of-a-byte")
def pieces(exchange: Exchange) -> None:
    """Sends the right response in one record, and each byte of the record on its own."""
    for byte in exchange.connection.seal(exchange.right()):
        exchange.connection.send_raw(bytes([byte]))


@answers("records-of-a-byte")
def bytes_each(exchange: Exchange) -> None:
    """Sends the right response with one record for each byte."""
    answer = exchange.right()
    exchange.connection.send_raw(b"".join(exchange.connection.seal(answer[at : at + 1]) for at in range(len(answer))))
