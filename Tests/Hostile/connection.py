"""The connections of scenarios: bytes over TCP, bytes over TLS, and TLS records."""

from __future__ import annotations

import itertools
import socket
import ssl
import struct
import threading
from collections.abc import Callable

from host import PATIENCE


SERIALS = itertools.count(1)


class Gone(Exception):
    """The client has closed or reset the connection, or this side has."""


class TunnelProgress:
    """The number of bytes that a tunnel has forwarded in one direction."""

    # By the address and port at which the tunnel's own end is.
    all: dict[tuple[str, int], TunnelProgress] = {}

    def __init__(self, sock: socket.socket) -> None:
        self._address = sock.getsockname()[:2]
        self._count = 0
        self._changed = threading.Condition()
        self._is_open = True
        TunnelProgress.all[self._address] = self

    def add(self, count: int) -> None:
        """Records that this many further bytes were forwarded."""
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
        """Waits until this many bytes were forwarded, or no further bytes will be."""
        with self._changed:
            self._changed.wait_for(lambda: self._count >= count or not self._is_open, PATIENCE)


class Connection:
    """A TCP connection."""

    is_secure = False

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        # Its number among all connections. Those to a proxy may carry requests to several hosts.
        self.serial = next(SERIALS)
        # Its number among the connections of its host.
        self.number = 1
        sock.settimeout(PATIENCE)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # In a tunnel what was sent has come when it was passed on.
        self._tunnel_progress = TunnelProgress.all.get(sock.getpeername()[:2])
        self._sent = 0

    def send_raw(self, data: bytes) -> None:
        """Sends raw TCP bytes, below TLS."""
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
        """The raw bytes that carry `data` to the client. Send them in the order of the calls."""
        return data

    def send(self, data: bytes) -> None:
        """Sends bytes to the client's application, through TLS if there is TLS."""
        self.send_raw(self.seal(data))

    def receive(self) -> bytes:
        """Receives the next bytes of the client's application."""
        return self.receive_raw()

    @property
    def has_more(self) -> bool:
        """Whether bytes were read from the socket that `receive` has not returned yet."""
        return False

    def close(self) -> None:
        """Ends the connection properly."""
        self.cut()

    def cut(self) -> None:
        """Ends the connection by FIN alone, without TLS's close_notify."""
        # Closing a socket with unread bytes sends RST instead of FIN. Therefore the bytes are read first.
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
    """A TLS connection whose records pass through memory, so that scenarios can hold, cut and add some."""

    is_secure = True

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, received: bytes) -> None:
        super().__init__(sock)
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._incoming.write(received)
        self._unread = b""
        # One thread may send while another one receives.
        self._lock = threading.Lock()
        # How often this side has sent bytes in the handshake.
        self.flights = 0

    def handshake(self, pass_on: Callable[[int, bytes], bytes | None] | None = None) -> None:
        """Performs the handshake.

        `pass_on` gets the number of each flight from 0 and its bytes, and returns what is sent in their place.
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
        """A fatal alert as this connection protects it: that is OpenSSL's answer to a record which is none."""
        self._incoming.write(b"\x17\x03\x03\x00\x20" + bytes(32))
        try:
            self._tls.read(1)
        except ssl.SSLError:
            pass
        return self._outgoing.read()

    def sealed_close_notify(self) -> bytes:
        """The alert that ends this side's data."""
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
        with self._lock:
            data = self._outgoing.read()
        if data:
            self.send_raw(data)


class Handshake:
    """A TCP connection on which a ClientHello has come, for scenarios below TLS."""

    def __init__(
        self, sock: socket.socket, context: ssl.SSLContext, hello: bytes, files: tuple[str, str]
    ) -> None:
        self.tcp = Connection(sock)
        # The certificate and its key.
        self.files = files
        # What TLS is served with.
        self.context = context
        # The record that the ClientHello came in.
        self.hello = hello

    def tls(self) -> TLSConnection:
        """The connection with TLS. The caller performs the handshake."""
        return TLSConnection(self.tcp.sock, self.context, self.hello)


def client_hello(sock: socket.socket) -> tuple[bytes, str]:
    """Reads a ClientHello; returns its bytes and the server name that it asks for."""
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
