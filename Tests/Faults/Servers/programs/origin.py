"""A server of the fault matrix: HTTPS over HTTP/1.1 and HTTP/2, with one fault at a time.

Usage: origin.py NAME ADDRESS PORT CERTIFICATES CONTROL LOG

CERTIFICATES is a folder with valid.pem, wrong.pem, expired.pem and early.pem, each with its key. CONTROL is
the file from which the server reads its commands after each SIGUSR1 (control.py). LOG gets a
line for each event: the time in nanoseconds, "open", "arrive" or "refuse", and the id of the request.
"""

from __future__ import annotations

import errno
import itertools
import os
import resource
import select
import socket
import ssl
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../Hostile"))

import control
import origin_http1
import origin_http2
from origin_connection import Gone, TLS

# The file name of the certificate, by the fault. Otherwise the server uses "valid".
CERTIFICATES = {"wrong-certificate": "wrong", "expired-certificate": "expired", "early-certificate": "early"}
# Faults that affect only new connections. When such a fault begins, the server ends the existing connections.
ENDS_CONNECTIONS = {"refused", "black-hole", "tcp-silent", "no-descriptors", *CERTIFICATES}


class Origin:
    """Listens on an endpoint. Each connection has a thread."""

    def __init__(self, name: str, address: str, port: int, certificates: str, log: str) -> None:
        self.name = name
        self.fault = "none"
        # Numbers the HTTP/2 connections.
        self.sessions = itertools.count()
        self._endpoint = (address, port)
        # The descriptor of the log file.
        self._log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._contexts = {kind: self._context(f"{certificates}/{kind}") for kind in ("valid", "wrong", "expired", "early")}
        self._lock = threading.Lock()
        self._connections: set[TLS] = set()
        # Set while the server has no connection.
        self._idle = threading.Event()
        self._idle.set()
        # This server's own connections to itself that fill the accept queue for the fault "black-hole".
        self._queued: list[socket.socket] = []
        # The limits of the process for descriptors, soft and hard, without a fault.
        self._limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._listener: socket.socket | None = None
        self._listen(512)

    @staticmethod
    def _context(path: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path + ".pem", path + ".key")
        context.set_alpn_protocols(["h2", "http/1.1"])
        return context

    def note(self, event: str, identifier: str = "-") -> None:
        """Logs an event. A single write to a file opened for appending is atomic."""
        os.write(self._log, b"%d %s %s\n" % (time.monotonic_ns(), event.encode(), identifier.encode()))

    def apply(self, fault: str) -> None:
        """Ends the current fault and begins another; "none" only ends the current fault."""
        before, self.fault = self.fault, fault
        if before == "no-descriptors":
            resource.setrlimit(resource.RLIMIT_NOFILE, self._limit)
        # The connections made during the fault that ends now are ended too, unless that fault only changed the
        # limit of streams: open connections adopt the new limit.
        if fault in ENDS_CONNECTIONS or before not in ("none", *origin_http2.LIMITS):
            self._end_connections()
            # The resources of a connection are free only when its thread has ended.
            self._idle.wait(2)
        if fault == "refused":
            self._close()
        elif fault == "black-hole":
            self._listen(0)
            self._fill()
        elif fault == "no-descriptors":
            # With the lowest free descriptor as the limit, accept(2) finds no descriptor.
            free = os.dup(0)
            os.close(free)
            resource.setrlimit(resource.RLIMIT_NOFILE, (free, self._limit[1]))
        elif before in ("refused", "black-hole"):
            self._listen(512)

    def _close(self) -> None:
        """Closes the listening socket and the connections that fill its queue."""
        with self._lock:
            listener, self._listener = self._listener, None
            queued, self._queued = self._queued, []
        for sock in (listener, *queued):
            if sock is not None:
                # Closing alone does not wake a thread that waits in accept(2).
                try:
                    sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
                sock.close()

    def _listen(self, backlog: int) -> None:
        self._close()
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(self._endpoint)
        listener.listen(backlog)
        self._listener = listener
        if backlog:
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def _fill(self) -> None:
        """Fills the accept queue, which no thread empties: Linux then drops further SYNs (listen(2))."""
        for _ in range(16):
            sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            sock.setblocking(False)
            sock.connect_ex(self._endpoint)
            self._queued.append(sock)
            # A connection to this machine is established at once, unless the queue is full. Then Linux drops
            # the SYN, and repeats it only after one second.
            if not select.select([], [sock], [], 0.02)[1]:
                return

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                # Waits with select(2), because accept(2) allocates a descriptor before it waits. A limit that
                # is set during the wait would not take that descriptor back.
                select.select([listener], [], [])
                sock, _ = listener.accept()
            except ValueError:
                return
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE):
                    time.sleep(0.01)
                    continue
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _end_connections(self) -> None:
        """Makes the threads of all connections end their connections. Does not wait for them."""
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            connection.stop()

    def _serve(self, sock: socket.socket) -> None:
        try:
            connection = TLS(self, sock)
        except OSError:
            sock.close()
            return
        with self._lock:
            self._connections.add(connection)
            self._idle.clear()
        self.note("open")
        try:
            if self.fault == "tcp-silent":
                connection.wait_for_end()
            connection.handshake(self._contexts[CERTIFICATES.get(self.fault, "valid")])
            if connection.protocol == "h2":
                origin_http2.Session(connection).serve()
            else:
                origin_http1.serve(connection)
        except (Gone, OSError):
            pass
        finally:
            connection.close()
            with self._lock:
                self._connections.discard(connection)
                if not self._connections:
                    self._idle.set()


def main() -> None:
    if len(sys.argv) != 7:
        sys.exit(__doc__)
    name, address, port, certificates, file, log = sys.argv[1:]
    # Blocks SIGUSR1 before the first thread starts, so that only `obey` receives it.
    control.block()
    origin = Origin(name, address, int(port), certificates, log)
    control.obey(file, origin.apply)


if __name__ == "__main__":
    main()
