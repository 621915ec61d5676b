"""Scenarios with TLS 1.3 records that no TLS library would send (RFC 8446, sections 4.6 and 5).

These scenarios encrypt the records themselves. Sections in comments are those of RFC 8446.
"""

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

# Types of a record's content (section 5.1). DATA is application_data.
HANDSHAKE, DATA = 22, 23


class SealedConnection(TLSConnection):
    """A TLS 1.3 connection that encrypts the records to the client in this process.

    OpenSSL performs the handshake, and decrypts what the client sends.
    """

    def __init__(self, begun: Handshake, early: Callable[[SealedConnection], bytes] | None = None) -> None:
        """Performs the handshake.

        What `early` makes is sent with the server's first flight, before the client can have sent a request.
        """
        with tempfile.NamedTemporaryFile(prefix="hostile-") as keys:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*begun.files)
            context.set_alpn_protocols(["http/1.1"])
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            # OpenSSL must send nothing after the handshake, so that the numbers of the records that are made
            # here begin at 0 (section 5.3).
            context.num_tickets = 0
            # OpenSSL writes the secrets of the connection to this file.
            context.keylog_filename = keys.name
            super().__init__(begun.tcp.sock, context, begun.hello)

            def pass_on(number: int, data: bytes) -> bytes:
                """Appends the early records to the server's first flight. The secret is known then."""
                if number > 0:
                    return data
                lines = [line.split() for line in keys.read().decode().splitlines()]
                self._secret = next(bytes.fromhex(line[2]) for line in lines if line[0] == "SERVER_TRAFFIC_SECRET_0")
                self._change_keys()
                return data + (early(self) if early else b"")

            self.handshake(pass_on)

    def _derive(self, label: bytes, length: int) -> bytes:
        """Derives bytes from the present secret: HKDF-Expand-Label (section 7.1)."""
        digest: HashAlgorithm = SHA384() if len(self._secret) == 48 else SHA256()
        info = struct.pack("!HB", length, len(label) + 6) + b"tls13 " + label + b"\0"
        return HKDFExpand(digest, length, info).derive(self._secret)

    def _change_keys(self) -> None:
        """Computes key and nonce from the secret, and numbers the records from 0 again (section 7.3)."""
        # The cipher is AES-GCM, which OpenSSL's clients prefer. The key has 32 bytes in the suite with
        # SHA-384, whose secrets have 48 bytes, and 16 bytes in the suite with SHA-256.
        self._cipher = AESGCM(self._derive(b"key", 32 if len(self._secret) == 48 else 16))
        self._nonce = int.from_bytes(self._derive(b"iv", 12), "big")
        self._count = 0

    def record(self, kind: int, data: bytes, padding: int = 0) -> bytes:
        """An encrypted record (section 5.2). Records must be sent in the order in which they were made."""
        inner = data + bytes([kind]) + bytes(padding)
        head = b"\x17\x03\x03" + struct.pack("!H", len(inner) + 16)
        sealed = self._cipher.encrypt((self._nonce ^ self._count).to_bytes(12, "big"), inner, head)
        self._count += 1
        return head + sealed

    def seal(self, data: bytes) -> bytes:
        return self.record(DATA, data)

    def ticket(self) -> bytes:
        """A record with a NewSessionTicket (section 4.6.1). The ticket is random: it resumes no session."""
        body = struct.pack("!II", 7200, 1) + b"\x01\x00" + struct.pack("!H", 16) + os.urandom(16) + b"\0\0"
        return self.record(HANDSHAKE, b"\x04" + len(body).to_bytes(3, "big") + body)

    def packed_tickets(self) -> bytes:
        """A record with as many NewSessionTickets as fit. Each of them is as small as it can be."""
        body = struct.pack("!II", 7200, 1) + b"\0" + struct.pack("!H", 1) + b"x\0\0"
        ticket = b"\x04" + len(body).to_bytes(3, "big") + body
        return self.record(HANDSHAKE, ticket * (16_000 // len(ticket)))

    def update(self, answer: bool) -> bytes:
        """A record with a KeyUpdate (section 4.6.3). `answer`: whether it asks the client for a KeyUpdate."""
        record = self.record(HANDSHAKE, b"\x18\0\0\x01" + bytes([answer]))
        self._secret = self._derive(b"traffic upd", len(self._secret))
        self._change_keys()
        return record


def sealed(
    name: str,
    answer: Callable[[SealedConnection, Exchange], None],
    early: Callable[[SealedConnection], bytes] | None = None,
) -> None:
    """Adds a scenario whose first connection is a `SealedConnection`. `answer` answers the requests on it.

    `early` makes records that come before the first request. Further connections give right responses.
    """

    def begin(begun: Handshake) -> None:
        http1.serve(SealedConnection(begun, early))

    def play(exchange: Exchange) -> None:
        if isinstance(exchange.connection, SealedConnection):
            answer(exchange.connection, exchange)
        else:
            exchange.send(exchange.right())

    add(Scenario(name, on_handshake=begin, on_request=play))


def flood(name: str, make: Callable[[SealedConnection], bytes]) -> None:
    """Adds two scenarios with endless records: one instead of the response, one after the right response."""

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
    """Sends each byte of the right response in its own record, with 16,000 bytes of padding (section 5.4)."""
    for byte in exchange.right():
        connection.send_raw(connection.record(DATA, bytes([byte]), padding=16_000))


sealed("tls13-padded-records", padded)


# A forged response. It comes with the server's first flight ("0.5-RTT data", section 4.4.4), before the
# client can have sent a request.
FORGED = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nX-Answer: 0\r\nContent-Length: 13\r\n\r\nforged answer"


def right(connection: SealedConnection, exchange: Exchange) -> None:
    """Sends the right response."""
    exchange.send(exchange.right())


sealed("tls13-answer-behind-finished", right, lambda connection: connection.seal(FORGED))
sealed(
    "tls13-tickets-and-answer-behind-finished",
    right,
    lambda connection: connection.ticket() + connection.ticket() + connection.seal(FORGED),
)
sealed("tls13-tickets-behind-finished", right, lambda connection: connection.ticket() + connection.ticket())


def rest(connection: SealedConnection, exchange: Exchange) -> None:
    """Sends the right response without its first 9 bytes, "HTTP/1.1 ", which came with the first flight."""
    exchange.send(exchange.right()[9:])


sealed("tls13-begin-of-an-answer-behind-finished", rest, lambda connection: connection.seal(b"HTTP/1.1 "))


class Divided:
    """A record with a forged response. Its first 20 bytes come before the request, and the rest after it."""

    # By connection, the bytes that come after the request.
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
