"""The connections of scenarios: bytes over TCP, bytes over TLS, and TLS records."""

from __future__ import annotations

import itertools
import socket
import ssl
import struct
import threading
from collections.abc import Callable

from host import PATIENCE


# The source of `Connection.serial`.
SERIALS = itertools.count(1)


class Gone(Exception):
    """The client has closed or reset the connection, or this side has."""


class TunnelProgress:
    """Counts the bytes that a tunnel has forwarded from the origin to the client (`http1.tunnel`)."""

    # The open tunnels. The key is the local address and port of the socket that connects to the origin.
    all: dict[tuple[str, int], TunnelProgress] = {}

    def __init__(self, sock: socket.socket) -> None:
        self._address = sock.getsockname()[:2]
        self._count = 0
        self._changed = threading.Condition()
        self._is_open = True
        TunnelProgress.all[self._address] = self

    def add(self, count: int) -> None:
        """Records that `count` more bytes were forwarded."""
        with self._changed:
            self._count += count
            self._changed.notify_all()

    def end(self) -> None:
        """Records that no further bytes will be forwarded."""
        del TunnelProgress.all[self._address]
        with self._changed:
            self._is_open = False
            self._changed.notify_all()

    def wait(self, count: int) -> None:
        """Waits until `count` bytes in all were forwarded, or the tunnel has ended; at most `PATIENCE`."""
        with self._changed:
            self._changed.wait_for(lambda: self._count >= count or not self._is_open, PATIENCE)


class Connection:
    """A connection from a client. In this class, without TLS."""

    is_secure = False

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        # The number of the connection among all connections to this server, from 1. It identifies connections
        # to a proxy, which may carry requests to several hosts.
        self.serial = next(SERIALS)
        # The number of the connection among the connections to its host, from 1.
        self.number = 1
        sock.settimeout(PATIENCE)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # The progress of the tunnel through which the connection came; `None` without a tunnel. Data has
        # reached the client only when the tunnel has forwarded it, so `send_raw` waits for that.
        self._tunnel_progress = TunnelProgress.all.get(sock.getpeername()[:2])
        # The number of bytes that were sent into the tunnel.
        self._sent = 0

    def send_raw(self, data: bytes) -> None:
        """Sends raw TCP bytes, below TLS. In a tunnel, waits until the tunnel has forwarded them."""
        try:
            self.sock.sendall(data)
        except OSError as error:
            raise Gone from error
        if self._tunnel_progress:
            self._sent += len(data)
            self._tunnel_progress.wait(self._sent)

    def receive_raw(self) -> bytes:
        """Receives the next raw TCP bytes, below TLS."""
        try:
            data = self.sock.recv(65536)
        except OSError as error:
            raise Gone from error
        if not data:
            raise Gone
        return data

    def seal(self, data: bytes) -> bytes:
        """Returns the raw bytes that carry `data` to the client: with TLS, encrypted records.

        The results must be sent in the order of the calls.
        """
        return data

    def send(self, data: bytes) -> None:
        """Sends bytes to the client, encrypted if the connection has TLS."""
        self.send_raw(self.seal(data))

    def receive(self) -> bytes:
        """Receives the next bytes from the client, decrypted if the connection has TLS."""
        return self.receive_raw()

    @property
    def has_more(self) -> bool:
        """Whether there are bytes that were read from the socket and that `receive` has not returned yet."""
        return False

    def close(self) -> None:
        """Ends the connection properly: with close_notify if it has TLS, and then by FIN."""
        self.cut()

    def cut(self) -> None:
        """Ends the connection by FIN alone, without TLS's close_notify."""
        # Closing a socket with unread bytes sends RST instead of FIN. So all bytes are read first.
        try:
            self.sock.shutdown(socket.SHUT_WR)
            while self.sock.recv(65536):
                pass
        except OSError:
            pass
        self.sock.close()

    def reset(self) -> None:
        """Ends the connection by RST."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


class TLSConnection(Connection):
    """A TLS connection. OpenSSL reads and writes its records in memory, not on the socket.

    So scenarios can hold back records, cut them and add others. `received` has the bytes that were read from
    the socket before.
    """

    is_secure = True

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, received: bytes) -> None:
        super().__init__(sock)
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._incoming.write(received)
        # The bytes that `unread` has put back.
        self._unread = b""
        # One thread may send while another one receives.
        self._lock = threading.Lock()
        # The number of flights so far. A flight is what the server sends in the handshake at once.
        self.flights = 0

    def handshake(self, pass_on: Callable[[int, bytes], bytes | None] | None = None) -> None:
        """Performs the handshake.

        `pass_on` gets each flight of the server: its number, from 0, and its bytes. It returns the bytes to
        send instead, or `None` to send nothing.
        """
        while True:
            try:
                self._tls.do_handshake()
                finished = True
            except ssl.SSLWantReadError:
                finished = False
            except ssl.SSLError as error:
                self._flush()
                raise Gone from error
            flight = self._outgoing.read()
            if flight:
                number, self.flights = self.flights, self.flights + 1
                wanted = pass_on(number, flight) if pass_on else flight
                if wanted:
                    self.send_raw(wanted)
            if finished:
                return
            self._incoming.write(self.receive_raw())

    @property
    def protocol(self) -> str | None:
        """The protocol that ALPN selected."""
        return self._tls.selected_alpn_protocol()

    def seal(self, data: bytes) -> bytes:
        with self._lock:
            try:
                self._tls.write(data)
            except ssl.SSLError as error:
                raise Gone from error
            return self._outgoing.read()

    @property
    def has_more(self) -> bool:
        return self._incoming.pending > 0 or self._tls.pending() > 0

    def unread(self, data: bytes) -> None:
        """Puts bytes back. The next `receive` returns them again."""
        self._unread = data

    def receive(self) -> bytes:
        if self._unread:
            data, self._unread = self._unread, b""
            return data
        while True:
            try:
                with self._lock:
                    data = self._tls.read(65536)
            except ssl.SSLWantReadError:
                self._flush()
                received = self.receive_raw()
                with self._lock:
                    self._incoming.write(received)
                continue
            except ssl.SSLError as error:
                raise Gone from error
            if not data:
                raise Gone
            return data

    def sealed_alert(self) -> bytes:
        """Returns the raw bytes of a fatal alert, encrypted for this connection.

        To make OpenSSL write the alert, gives OpenSSL an invalid record, as if the client had sent it.
        """
        self._incoming.write(b"\x17\x03\x03\x00\x20" + bytes(32))
        try:
            self._tls.read(1)
        except ssl.SSLError:
            pass
        return self._outgoing.read()

    def sealed_close_notify(self) -> bytes:
        """Returns the raw bytes of close_notify, the alert after which the server sends no more data."""
        try:
            self._tls.unwrap()
        except (ssl.SSLError, ValueError):
            pass
        return self._outgoing.read()

    def close(self) -> None:
        try:
            self.send_raw(self.sealed_close_notify())
        except Gone:
            pass
        self.cut()

    def _flush(self) -> None:
        """Sends what OpenSSL has written by itself, such as an alert."""
        with self._lock:
            data = self._outgoing.read()
        if data:
            self.send_raw(data)


class Handshake:
    """A TCP connection on which a ClientHello has come, for scenarios that replace the TLS handshake."""

    def __init__(
        self, sock: socket.socket, context: ssl.SSLContext, hello: bytes, files: tuple[str, str]
    ) -> None:
        self.tcp = Connection(sock)
        # The paths of the certificate and of its key.
        self.files = files
        # The TLS settings of the server.
        self.context = context
        # The bytes that were received: the record with the ClientHello.
        self.hello = hello

    def tls(self) -> TLSConnection:
        """Returns a TLS connection over this TCP connection. The caller performs the handshake."""
        return TLSConnection(self.tcp.sock, self.context, self.hello)


def begins_handshake(sock: socket.socket) -> bool:
    """Whether the first byte of a connection begins a TLS handshake. Leaves the byte for the next reader."""
    sock.settimeout(PATIENCE)
    try:
        return sock.recv(1, socket.MSG_PEEK) == b"\x16"
    except OSError as error:
        raise Gone from error


def client_hello(sock: socket.socket) -> tuple[bytes, str]:
    """Reads a ClientHello. Returns its bytes, and the server name that it asks for, or an empty name."""
    sock.settimeout(PATIENCE)
    data = b""
    while len(data) < 5 or len(data) < 5 + int.from_bytes(data[3:5], "big"):
        try:
            more = sock.recv(65536)
        except OSError as error:
            raise Gone from error
        if not more:
            raise Gone
        data += more
    # RFC 8446, section 4.1.2: record and message header, version, random; then lists that begin with their lengths.
    at = 5 + 4 + 2 + 32
    at += 1 + data[at]
    at += 2 + int.from_bytes(data[at : at + 2], "big")
    at += 1 + data[at]
    end = at + 2 + int.from_bytes(data[at : at + 2], "big")
    at += 2
    while at + 4 <= end:
        kind, length = struct.unpack("!HH", data[at : at + 4])
        if kind == 0:
            # RFC 6066, section 3: the length of the list, the kind of name, its length.
            return data, data[at + 9 : at + 4 + length].decode("ascii")
        at += 4 + length
    return data, ""
