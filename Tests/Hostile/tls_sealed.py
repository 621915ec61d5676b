"""TLS 1.3 records that are made here, which no TLS library would send (RFC 8446, sections 4.6 and 5)."""

from __future__ import annotations

import os
import ssl
import struct
import tempfile
from collections.abc import Callable

import http1
from connection import Handshake, TLSConnection
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256, SHA384, HashAlgorithm
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from http1 import Exchange
from scenarios import Scenario, add

HANDSHAKE, DATA = 22, 23


class SealedConnection(TLSConnection):
    """A TLS 1.3 connection whose records to the client are made with its keys."""

    def __init__(self, begun: Handshake, early: Callable[[SealedConnection], bytes] | None = None) -> None:
        """Performs the handshake. What `early` makes comes with the server's first flight, before the client can have asked."""
        with tempfile.NamedTemporaryFile(prefix="hostile-") as keys:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*begun.files)
            context.set_alpn_protocols(["http/1.1"])
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            # Numbers of records begin with those that are made here.
            context.num_tickets = 0
            context.keylog_filename = keys.name
            super().__init__(begun.tcp.sock, context, begun.hello)

            def pass_on(number: int, data: bytes) -> bytes:
                if number > 0:
                    return data
                lines = [line.split() for line in keys.read().decode().splitlines()]
                self._secret = next(bytes.fromhex(line[2]) for line in lines if line[0] == "SERVER_TRAFFIC_SECRET_0")
                self._change_keys()
                return data + (early(self) if early else b"")

            self.handshake(pass_on)

    def _derive(self, label: bytes, length: int) -> bytes:
        """HKDF-Expand-Label (section 7.1)."""
        digest: HashAlgorithm = SHA384() if len(self._secret) == 48 else SHA256()
        info = struct.pack("!HB", length, len(label) + 6) + b"tls13 " + label + b"\0"
        return HKDFExpand(digest, length, info).derive(self._secret)

    def _change_keys(self) -> None:
        # The suites of AES-GCM, which OpenSSL's clients prefer: their keys are half of SHA-256, or two thirds of SHA-384.
        self._cipher = AESGCM(self._derive(b"key", 32 if len(self._secret) == 48 else 16))
        self._nonce = int.from_bytes(self._derive(b"iv", 12), "big")
        self._count = 0

    def record(self, kind: int, data: bytes, padding: int = 0) -> bytes:
        """A record; to be sent in the order in which they were made."""
        inner = data + bytes([kind]) + bytes(padding)
        head = b"\x17\x03\x03" + struct.pack("!H", len(inner) + 16)
        sealed = self._cipher.encrypt((self._nonce ^ self._count).to_bytes(12, "big"), inner, head)
        self._count += 1
        return head + sealed

    def seal(self, data: bytes) -> bytes:
        return self.record(DATA, data)

    def ticket(self) -> bytes:
        """A NewSessionTicket that nobody can resume with (section 4.6.1)."""
        body = struct.pack("!II", 7200, 1) + b"\x01\x00" + struct.pack("!H", 16) + os.urandom(16) + b"\0\0"
        return self.record(HANDSHAKE, b"\x04" + len(body).to_bytes(3, "big") + body)

    def packed_tickets(self) -> bytes:
        """A record full of tickets, each as small as it can be."""
        body = struct.pack("!II", 7200, 1) + b"\0" + struct.pack("!H", 1) + b"x\0\0"
        ticket = b"\x04" + len(body).to_bytes(3, "big") + body
        return self.record(HANDSHAKE, ticket * (16_000 // len(ticket)))

    def update(self, answer: bool) -> bytes:
        """A KeyUpdate (section 4.6.3)."""
        record = self.record(HANDSHAKE, b"\x18\0\0\x01" + bytes([answer]))
        self._secret = self._derive(b"traffic upd", len(self._secret))
        self._change_keys()
        return record


def sealed(
    name: str,
    answer: Callable[[SealedConnection, Exchange], None],
    early: Callable[[SealedConnection], bytes] | None = None,
) -> None:
    """Adds a scenario whose first connection makes its own records. `answer` sends the responses on it."""

    def begin(begun: Handshake) -> None:
        http1.serve(SealedConnection(begun, early))

    def play(exchange: Exchange) -> None:
        if isinstance(exchange.connection, SealedConnection):
            answer(exchange.connection, exchange)
        else:
            exchange.send(exchange.right())

    add(Scenario(name, on_handshake=begin, on_request=play))


def flood(name: str, make: Callable[[SealedConnection], bytes]) -> None:
    """Adds two scenarios with endless records: instead of the response, and after the response."""

    def go_on(connection: SealedConnection, exchange: Exchange) -> None:
        while True:
            connection.send_raw(b"".join(make(connection) for _ in range(200)))

    def go_on_behind(connection: SealedConnection, exchange: Exchange) -> None:
        exchange.send(exchange.right())
        go_on(connection, exchange)

    sealed(f"tls13-{name}-without-end", go_on)
    sealed(f"tls13-{name}-without-end-behind", go_on_behind)


flood("tickets", lambda connection: connection.ticket())
flood("packed-tickets", lambda connection: connection.packed_tickets())
flood("key-updates", lambda connection: connection.update(False))
flood("key-updates-both", lambda connection: connection.update(True))
flood("empty-records", lambda connection: connection.record(DATA, b""))


def padded(connection: SealedConnection, exchange: Exchange) -> None:
    """Each byte in a record that is filled up (section 5.4)."""
    for byte in exchange.right():
        connection.send_raw(connection.record(DATA, bytes([byte]), padding=16_000))


sealed("tls13-padded-records", padded)


# An answer that comes with the server's first flight ("0.5-RTT data", RFC 8446, section 4.4.4) answers nothing.
FORGED = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nX-Answer: 0\r\nContent-Length: 13\r\n\r\nforged answer"


def right(connection: SealedConnection, exchange: Exchange) -> None:
    exchange.send(exchange.right())


sealed("tls13-answer-behind-finished", right, lambda connection: connection.seal(FORGED))
sealed(
    "tls13-tickets-and-answer-behind-finished",
    right,
    lambda connection: connection.ticket() + connection.ticket() + connection.seal(FORGED),
)
sealed("tls13-tickets-behind-finished", right, lambda connection: connection.ticket() + connection.ticket())


def rest(connection: SealedConnection, exchange: Exchange) -> None:
    """What completes an answer that has begun."""
    exchange.send(exchange.right()[9:])


sealed("tls13-begin-of-an-answer-behind-finished", rest, lambda connection: connection.seal(b"HTTP/1.1 "))


class Divided:
    """A record of which one part comes before the request, and the other after it."""

    rest: dict[SealedConnection, bytes] = {}

    @classmethod
    def early(cls, connection: SealedConnection) -> bytes:
        record = connection.seal(FORGED)
        cls.rest[connection] = record[20:]
        return record[:20]

    @classmethod
    def late(cls, connection: SealedConnection, exchange: Exchange) -> None:
        connection.send_raw(cls.rest.pop(connection))


sealed("tls13-record-divided-behind-finished", Divided.late, Divided.early)
