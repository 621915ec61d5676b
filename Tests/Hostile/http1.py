"""The server's side of HTTP/1.1: reads requests, and responds rightly unless a scenario does otherwise."""

from __future__ import annotations

import re
import select
import socket

from connection import Connection, Gone, TunnelProgress
from host import PATIENCE, Host, host
from scenarios import TABLE


class Exchange:
    """One request, and the connection that it came on. `name` is the value of the request's Host field."""

    def __init__(self, connection: Connection, name: str, head: bytes, body: bytes) -> None:
        self.connection = connection
        self.host: Host = host(name)
        self.method, target = head.split(b" ")[:2]
        # A client of a proxy sends the whole URL as the target (RFC 9112, section 3.2.2). Only path and query
        # are kept.
        self.target = re.sub(rb"^http://[^/]*", b"", target)
        found = re.search(rb"q=(\d+)", self.target)
        # The number of the request, from the query of its URL. Every right response carries it.
        self.question = int(found[1]) if found else 0
        # The body of the request.
        self.sent = body

    @property
    def body(self) -> bytes:
        """The body of the right response."""
        return b"answer %d" % self.question

    def head(self, *lines: bytes, status: bytes = b"HTTP/1.1 200 OK") -> bytes:
        """A cacheable head with the number of the request and further lines, including the empty line."""
        first = [status, b"Cache-Control: max-age=3600", b"X-Answer: %d" % self.question]
        first.append(b"X-Connection: %d" % self.connection.number)
        first.append(b"X-Serial: %d" % self.connection.serial)
        return b"\r\n".join([*first, *lines, b"", b""])

    def right(self, *lines: bytes, status: bytes = b"HTTP/1.1 200 OK", body: bytes | None = None) -> bytes:
        """A whole response with Content-Length, by default with the right body."""
        body = self.body if body is None else body
        return self.head(b"Content-Length: %d" % len(body), *lines, status=status) + body

    def forged(self) -> bytes:
        """A whole forged response, which no request asked for."""
        body = b"forged answer"
        lines = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nX-Answer: 0\r\nContent-Length: %d\r\n\r\n"
        return lines % len(body) + body

    def chunked(self, *pieces: bytes) -> bytes:
        """The head of a chunked response, followed by these pieces."""
        return self.head(b"Transfer-Encoding: chunked") + b"".join(pieces)

    def chunk(self, data: bytes | None = None) -> bytes:
        """A chunk, by default with the whole right body."""
        data = self.body if data is None else data
        return b"%x\r\n" % len(data) + data + b"\r\n"

    def send(self, data: bytes) -> None:
        self.connection.send(data)

    def close(self) -> None:
        self.connection.close()

    def reset(self) -> None:
        self.connection.reset()

    def send_then_late(self, first: bytes, later: bytes, *, then_close: bool = False) -> None:
        """Sends raw TCP bytes now, and further raw bytes when the test releases them.

        With `then_close`, a FIN follows the further bytes.
        """
        # The further bytes are announced before the response is sent: once the client has the response, the
        # test may release them at any time.
        late = self.host.late()
        self.connection.send_raw(first)
        late.due.wait(PATIENCE)
        try:
            self.connection.send_raw(later)
            if then_close:
                self.connection.sock.shutdown(1)
        except (Gone, OSError):
            pass
        late.done.set()

    def flood(self, piece: bytes, *, first: bytes = b"", most: int = 1 << 30) -> None:
        """Sends `first` once and then `piece` repeatedly, until `most` bytes are sent.

        Raises `Gone` if the client closes the connection before.
        """
        self.send(first)
        block = piece * max(1, 65536 // len(piece))
        for _ in range(most // len(block)):
            self.send(block)


def serve(connection: Connection) -> None:
    """Responds to the requests of a connection until one side ends the connection."""
    pending = b""
    while True:
        while b"\r\n\r\n" not in pending:
            pending += connection.receive()
        head, pending = pending.split(b"\r\n\r\n", 1)
        found = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        length = int(found[1]) if found else 0
        found = re.search(rb"(?i)\r\nhost: *([^\r]*)", head)
        name = found[1].decode() if found else ""
        scenario = TABLE.get(host(name).scenario)
        is_early = scenario is not None and scenario.is_early and not head.startswith(b"CONNECT ")
        if is_early or re.search(rb"(?i)\r\nexpect:", head):
            # The request is answered before its body comes. The body is read all the same (RFC 9110, section
            # 10.1.1).
            answer(Exchange(connection, name, head, b""))
            if connection.sock.fileno() < 0:
                raise Gone
            while len(pending) < length:
                pending += connection.receive()
            pending = pending[length:]
            continue
        while len(pending) < length:
            pending += connection.receive()
        body, pending = pending[:length], pending[length:]
        if head.startswith(b"CONNECT "):
            name, port = head.split(b" ")[1].decode().rsplit(":", 1)
            state = host(name)
            scenario = TABLE.get(state.scenario)
            is_second = state.tunneled() == 2 and len(state.received()) == 2
            if is_second and scenario and scenario.on_second_tunnel:
                scenario.on_second_tunnel(connection)
            tunnel(connection, int(port))
            return
        answer(Exchange(connection, name, head, body))
        if connection.sock.fileno() < 0:
            raise Gone


def tunnel(connection: Connection, port: int) -> None:
    """Passes bytes on between a client's connection and a port of this server, the origin.

    Data that the origin sends together goes to the client in one piece.
    """
    server = socket.socket(connection.sock.family)
    server.bind((connection.sock.getsockname()[0], 0))
    progress = TunnelProgress(server)
    server.connect((connection.sock.getsockname()[0], port))
    server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.send(b"HTTP/1.1 200 OK\r\n\r\n")

    try:
        while True:
            # One thread serves both directions, because closing a socket does not reset the connection while
            # another thread reads from the socket.
            ready, _, _ = select.select([connection.sock, server], [], [], PATIENCE)
            if server in ready:
                try:
                    data = server.recv(65536)
                except OSError:
                    return connection.reset()
                if not data:
                    return connection.close()
                connection.send(data)
                progress.add(len(data))
            while connection.sock in ready:
                server.sendall(connection.receive())
                if not connection.has_more:
                    break
            if not ready:
                return connection.close()
    except (Gone, OSError):
        pass
    finally:
        progress.end()
        server.close()


def answer(exchange: Exchange) -> None:
    """Answers one request.

    The targets /received, /release and /script are commands of the test. Other requests are recorded. They
    get the right response if the target is /right or the host has no scenario, and otherwise the scenario.
    """
    target = exchange.target
    if target.startswith(b"/received"):
        exchange.send(exchange.right(body="\n".join(exchange.host.received()).encode()))
        return
    if target.startswith(b"/release"):
        exchange.send(exchange.right(body=b"%d" % exchange.host.release()))
        return
    if target.startswith(b"/script"):
        exchange.host.script = exchange.sent
        exchange.send(exchange.right(body=b""))
        return
    exchange.host.note(f"{exchange.method.decode()} {exchange.question}")
    scenario = TABLE.get(exchange.host.scenario)
    play = scenario.on_request if scenario else None
    if target.startswith(b"/right") or play is None:
        exchange.send(exchange.right())
    else:
        play(exchange)
