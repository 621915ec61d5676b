"""A proxy over TLS whose own connection is renegotiated, while the connection in its tunnel is not."""

from __future__ import annotations

import http1
from connection import Gone, Handshake, TLSConnection
from host import PATIENCE, host
from http1 import Exchange
from scenarios import Scenario, add
from tls_control import RENEGOTIATE, Program

# How long the next request may take to come over another connection. When it does not come, the client has it on this one.
NEXT_REQUEST = 0.2


class Tunneled(TLSConnection):
    """TLS within a connection that openssl(1) serves."""

    def __init__(self, begun: Handshake, program: Program) -> None:
        super().__init__(begun.tcp.sock, begun.context, b"")
        self.program = program

    def send_raw(self, data: bytes) -> None:
        # No record begins with a letter that is a command.
        self.program.send(data)

    def receive_raw(self) -> bytes:
        # The program's own text has none of the bytes that a record begins with (RFC 5246, section 6.2.1).
        begin = self.program.wait_for(rb"[\x14-\x17]\x03[\x01-\x03](..)")
        length = int.from_bytes(begin[1], "big")
        return begin[0] + self.program.wait_for(rb".{%d}" % length)[0]


def proxy(begun: Handshake) -> None:
    """Answers one CONNECT, and serves what comes through the tunnel."""
    program = Program(begun, "-tls1_2")
    try:
        state = host(program.wait_for(rb"CONNECT ([^:]+):\d+ HTTP/1\.1\r\n.*?\r\n\r\n")[1].decode())
        program.send(b"HTTP/1.1 200 OK\r\n\r\n")
        connection = Tunneled(begun, program)
        # It is the origin's first one. Those that come through another connection to the proxy are good.
        connection.number = state.connected()
        connection.handshake()
        http1.serve(connection)
    finally:
        program.end()


def answer_in_renegotiation(exchange: Exchange) -> None:
    """The proxy asks for a renegotiation before the end of an answer, and does its own part of it when a forged answer was sent behind."""
    connection = exchange.connection
    assert isinstance(connection, Tunneled)
    program, state = connection.program, exchange.host
    late, known = state.late(), len(state.received())
    right = exchange.right()
    exchange.send(right[:-6])
    program.keep()
    program.send(RENEGOTIATE, is_answered=False)
    # From the client's part of it on the client can send no request.
    program.wait_for_client()
    exchange.send(right[-6:])
    late.due.wait(PATIENCE)
    state.wait_for_requests(known + 1, NEXT_REQUEST)
    try:
        exchange.send(exchange.forged())
        program.give()
    except (Gone, OSError):
        pass
    late.done.set()


# The proxy's name has this scenario as well as the origin's.
add(
    Scenario(
        "tls12-proxy-in-a-renegotiation", tickets=0, on_request=answer_in_renegotiation, on_handshake=proxy
    )
)
