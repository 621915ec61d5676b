"""A connection of the fault matrix's server. Only its own thread reads and writes; others may stop it."""

from __future__ import annotations

import os
import select
import socket
import ssl
import struct
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from origin import Origin


class Gone(Exception):
    """The connection has ended or must end."""


class TLS:
    """A connection. It begins without TLS; `handshake` starts TLS."""

    def __init__(self, origin: Origin, sock: socket.socket) -> None:
        self.origin = origin
        # When the server accepted the connection, in seconds of the monotonic clock.
        self.opened = time.monotonic()
        # The number of requests on this connection so far.
        self.requests = 0
        self._sock: socket.socket | ssl.SSLSocket = sock
        # A pipe: `stop` writes to its second end, which wakes the thread that waits for the first.
        self._wake, self._waker = os.pipe()
        # Whether `_end` has yet to close the socket and the pipe.
        self._open = True
        sock.settimeout(20)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def handshake(self, context: ssl.SSLContext) -> None:
        """Performs the TLS handshake."""
        self._sock = context.wrap_socket(self._sock, server_side=True)

    @property
    def protocol(self) -> str | None:
        """The protocol that ALPN selected."""
        return self._sock.selected_alpn_protocol()  # type: ignore[union-attr]

    def stop(self) -> None:
        """Makes the connection's own thread end the connection. May be called from any thread."""
        try:
            os.write(self._waker, b"x")
        except OSError:
            pass

    def wait(self, seconds: float = 20.0) -> bool:
        """Waits for bytes; returns whether there are any. Raises `Gone` when `stop` was called."""
        if isinstance(self._sock, ssl.SSLSocket) and self._sock.pending():
            return True
        ready, _, _ = select.select([self._sock, self._wake], [], [], seconds)
        if self._wake in ready:
            raise Gone
        return bool(ready)

    def wait_for_end(self) -> None:
        """Waits until `stop` is called, and then raises `Gone`."""
        select.select([self._wake], [], [])
        raise Gone

    def receive(self) -> bytes:
        """Reads the available bytes. Call `wait` first.

        Raises `Gone` when the client has ended the connection.
        """
        data = self._sock.recv(65536)
        if not data:
            raise Gone
        return data

    def send(self, data: bytes) -> None:
        self._sock.sendall(data)

    def reset(self) -> None:
        """Ends the connection with RST, and then raises `Gone`."""
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._end()
        raise Gone

    def finish(self) -> None:
        """Ends the connection in order, with close_notify, and then raises `Gone`."""
        self._sock.settimeout(1)
        try:
            self._sock.unwrap()  # type: ignore[union-attr]
        except (OSError, ValueError):
            pass
        self._end()
        raise Gone

    def close(self) -> None:
        """Closes the socket without close_notify. Linux sends FIN, or RST if received bytes were not read."""
        self._end()

    def _end(self) -> None:
        if self._open:
            self._open = False
            self._sock.close()
            os.close(self._wake)
            os.close(self._waker)
