"""HTTP/1.1 of the fault matrix's server."""

from __future__ import annotations

import re
import time

from origin_answer import Question
from origin_connection import Gone, TLS

# The number of requests on a connection after which the fault "goaway-requests" ends it.
LIMIT_REQUESTS = 5
# The age of a connection at which the fault "goaway-time" ends it.
LIMIT_SECONDS = 0.2


class Reader:
    """Reads requests from a connection."""

    def __init__(self, connection: TLS) -> None:
        self._connection = connection
        # The bytes that have arrived and that no call has returned yet.
        self.pending = b""

    def more(self) -> None:
        """Waits for bytes and adds them to `pending`."""
        while not self._connection.wait(0.05):
            duties(self._connection)
        self.pending += self._connection.receive()

    def line(self) -> bytes:
        """Reads a line, without its end."""
        while b"\r\n" not in self.pending:
            self.more()
        line, self.pending = self.pending.split(b"\r\n", 1)
        return line

    def take(self, count: int) -> bytes:
        """Reads `count` bytes."""
        while len(self.pending) < count:
            self.more()
        data, self.pending = self.pending[:count], self.pending[count:]
        return data


def duties(connection: TLS) -> None:
    """Ends an old connection if the fault is "goaway-time". Called while no bytes arrive."""
    age = time.monotonic() - connection.opened
    if connection.origin.fault == "goaway-time" and connection.requests and age > LIMIT_SECONDS:
        connection.finish()


def serve(connection: TLS) -> None:
    """Answers requests until the connection ends."""
    reader = Reader(connection)
    while True:
        if connection.origin.fault == "keep-alive-race" and connection.requests:
            # Waits until the next request arrives, and closes the connection without reading the request.
            while not connection.wait():
                pass
            raise Gone
        request, lines = reader.line(), []
        while line := reader.line():
            lines.append(line)
        question = Question(request.split(b" ")[1].decode())
        connection.requests += 1
        connection.origin.note("arrive", question.id)
        fields = b"\r\n".join(lines)
        if re.search(rb"(?i)^expect: *100-continue", fields, re.M):
            connection.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        if re.search(rb"(?i)^transfer-encoding: *chunked", fields, re.M):
            while size := int(reader.line(), 16):
                question.received += reader.take(size)
                reader.line()
            reader.line()
        elif found := re.search(rb"(?i)^content-length: *(\d+)", fields, re.M):
            question.received += reader.take(int(found[1]))
        answer(connection, question)


def answer(connection: TLS, question: Question) -> None:
    """Answers one request according to the fault."""
    origin, body = connection.origin, question.answer()
    last = origin.fault == "goaway-requests" and connection.requests >= LIMIT_REQUESTS
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nX-Id: {question.id}\r\nX-Origin: {origin.name}\r\n"
        + ("Connection: close\r\n\r\n" if last else "\r\n")
    ).encode()
    if origin.fault == "reset-before-head":
        connection.reset()
    elif origin.fault == "reset-in-head":
        connection.send(head[:30])
        connection.reset()
    elif origin.fault == "reset-after-head":
        connection.send(head)
        connection.reset()
    elif origin.fault == "cut-body":
        connection.send(head + body[: len(body) // 2])
        connection.finish()
    elif origin.fault == "stall":
        connection.send(head + body[: len(body) // 2])
        connection.wait_for_end()
    elif origin.fault == "tls-silent":
        connection.wait_for_end()
    connection.send(head + body)
    if last:
        connection.finish()
