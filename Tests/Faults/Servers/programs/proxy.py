"""An HTTP proxy of the fault matrix that supports only CONNECT (RFC 9110, section 9.3.6).

Usage: proxy.py ADDRESS PORT CONTROL SERVER

All tunnels lead to the address SERVER. Words: "none"; "refuse", the proxy does not listen; "answer-503";
"reset", the proxy resets each new connection at its first byte. Each word ends the existing tunnels.
"""

from __future__ import annotations

import select
import socket
import struct
import sys
import threading

sys.dont_write_bytecode = True

import control


class Proxy:
    """Listens, and starts a thread for each connection."""

    def __init__(self, address: str, port: int, server: str) -> None:
        self._endpoint, self._server = (address, port), server
        self._word = "none"
        self._lock = threading.Lock()
        # The connections of clients.
        self._open: set[socket.socket] = set()
        # The listening socket; `None` during the fault "refuse".
        self._listener: socket.socket | None = None
        self.apply("none")

    def apply(self, word: str) -> None:
        """Ends the existing tunnels, and begins the fault of a word; "none" ends it."""
        self._word = word
        with self._lock:
            ending = list(self._open)
        for sock in ending:
            end(sock)
        if word == "refuse" and self._listener is not None:
            listener, self._listener = self._listener, None
            end(listener)
            listener.close()
        elif word != "refuse" and self._listener is None:
            self._listener = socket.create_server(self._endpoint, backlog=512)
            threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        with self._lock:
            self._open.add(sock)
        try:
            self._tunnel(sock)
        except OSError:
            pass
        finally:
            with self._lock:
                self._open.discard(sock)
            sock.close()

    def _tunnel(self, sock: socket.socket) -> None:
        """Answers a CONNECT according to the fault, and passes bytes on until one side ends the tunnel."""
        head = b""
        while b"\r\n\r\n" not in head:
            data = sock.recv(65536)
            if not data:
                return
            head += data
            if self._word == "reset":
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
        if self._word == "answer-503":
            sock.sendall(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
            return
        port = int(head.split(b" ")[1].rsplit(b":", 1)[1])
        with socket.create_connection((self._server, port), 5) as server:
            sock.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
            others = {sock: server, server: sock}
            while True:
                for ready in select.select([sock, server], [], [])[0]:
                    data = ready.recv(65536)
                    if not data:
                        return
                    others[ready].sendall(data)


def end(sock: socket.socket) -> None:
    """Shuts a socket down. Unlike closing the socket, this wakes the thread that waits for it."""
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


def main() -> None:
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    address, port, file, server = sys.argv[1:]
    control.block()
    proxy = Proxy(address, int(port), server)
    control.obey(file, proxy.apply)


if __name__ == "__main__":
    main()
