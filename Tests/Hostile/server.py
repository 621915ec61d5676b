"""A server on loopback that misbehaves as the tests ask.

Usage: server.py CERTIFICATE KEY ADDRESS
       server.py --list

It prints its ports for HTTP and HTTPS, and serves until it is killed. The first label of a host name, up to
"--", names the scenario. What follows "--" makes the host name unique, so that each run of a test has its own
state. With --list, it prints the names of all scenarios instead.

The path of a request says what the server does:

- /right: sends the right response, without any misbehaviour.
- /received: returns the list of the requests that its host has received so far.
- /release: makes the scenario send what it holds back, and returns how many such pieces there were.
- /script: sets what the scenario h2-script sends; the body of the request has these bytes.
- all others: plays the scenario.
"""

from __future__ import annotations

import socket
import ssl
import sys
import threading
from collections.abc import Callable

sys.dont_write_bytecode = True

import http1
import http1_bodies  # noqa: F401
import http1_codings  # noqa: F401
import http1_ends  # noqa: F401
import http1_fields  # noqa: F401
import http1_floods  # noqa: F401
import http1_leftovers  # noqa: F401
import http1_status  # noqa: F401
import http2_ends  # noqa: F401
import http2_fields  # noqa: F401
import http2_floods  # noqa: F401
import http2_frames  # noqa: F401
import http2_lengths  # noqa: F401
import http2_refusals  # noqa: F401
import http2_rests  # noqa: F401
import http2_together  # noqa: F401
import tls_control  # noqa: F401
import tls_proxy  # noqa: F401
import tls_records  # noqa: F401
import tls_sealed  # noqa: F401
from connection import Connection, Gone, Handshake, TLSConnection, begins_handshake, client_hello
from host import host
from http2 import Session
from scenarios import TABLE, Scenario


class Server:
    """Listens on two ports of an address, one of them with TLS. Each connection has its own thread."""

    def __init__(self, certificate: str, key: str, address: str) -> None:
        # The paths of the certificate and its key.
        self._files = (certificate, key)
        # By the application protocol, version of TLS and number of tickets of a scenario. `_lock` guards the
        # dictionary.
        self._contexts: dict[tuple[str, int, int], ssl.SSLContext] = {}
        self._lock = threading.Lock()
        self.plain = socket.create_server((address, 0), backlog=512)
        self.secure = socket.create_server((address, 0), backlog=512)

    def accept(self, listener: socket.socket, serve: Callable[[socket.socket], None]) -> None:
        """Accepts connections without end. Calls `serve` for each of them, on a new thread."""
        while True:
            sock, _ = listener.accept()
            threading.Thread(target=self._serve, args=(sock, serve), daemon=True).start()

    @staticmethod
    def _serve(sock: socket.socket, serve: Callable[[socket.socket], None]) -> None:
        try:
            serve(sock)
        except Gone:
            pass
        finally:
            sock.close()

    def serve_plain(self, sock: socket.socket) -> None:
        """Serves a connection without TLS."""
        http1.serve(Connection(sock))

    def serve_secure(self, sock: socket.socket) -> None:
        """Serves a connection with TLS, or without it if the first byte is not that of a TLS handshake."""
        if not begins_handshake(sock):
            self.serve_plain(sock)
            return
        hello, name = client_hello(sock)
        state = host(name)
        number = state.connected()
        scenario = TABLE.get(state.scenario, Scenario(state.scenario))
        context = self._context(scenario)
        if scenario.on_handshake is not None and number == 1:
            scenario.on_handshake(Handshake(sock, context, hello, self._files))
            return
        connection = TLSConnection(sock, context, hello)
        connection.number = number
        connection.handshake()
        if connection.protocol == "h2":
            Session(connection, state).serve()
        else:
            http1.serve(connection)

    def _context(self, scenario: Scenario) -> ssl.SSLContext:
        """The TLS settings for a scenario."""
        key = (scenario.protocol, scenario.tls, scenario.tickets)
        with self._lock:
            if key not in self._contexts:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(*self._files)
                context.set_alpn_protocols([scenario.protocol])
                context.num_tickets = scenario.tickets
                if scenario.tls == 2:
                    context.maximum_version = ssl.TLSVersion.TLSv1_2
                self._contexts[key] = context
            return self._contexts[key]


def main() -> None:
    if sys.argv[1:] == ["--list"]:
        print("\n".join(sorted(TABLE)))
        return
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    server = Server(*sys.argv[1:])
    threading.Thread(target=server.accept, args=(server.plain, server.serve_plain), daemon=True).start()
    print(server.plain.getsockname()[1], server.secure.getsockname()[1], "ready", flush=True)
    server.accept(server.secure, server.serve_secure)


if __name__ == "__main__":
    main()
