"""A scenario with a TLS proxy that renegotiates the client's connection to it.

The TLS connection inside the proxy's tunnel is not renegotiated.
"""

from __future__ import annotations

import http1
from connection import Gone, Handshake, TLSConnection
from host import PATIENCE, host
from http1 import Exchange
from scenarios import Scenario, add
from tls_control import RENEGOTIATE, Program

# How long to wait for the client's next request on another connection, in seconds. If none comes in this
# time, the client wants to send the request on this connection.
NEXT_REQUEST = 0.2


class Tunneled(TLSConnection):
    """The server's end of the TLS connection inside the tunnel. openssl(1) serves the outer connection."""

    def __init__(self, begun: Handshake, program: Program) -> None:
        super().__init__(begun.tcp.sock, begun.context, b"")
        self.program = program

    def send_raw(self, data: bytes) -> None:
        # The program takes no record for a command, because the first byte of a record is no letter.
        self.program.send(data)

    def receive_raw(self) -> bytes:
        # The program prints the client's records, and messages of its own between them. These messages have
        # none of the bytes with which a record begins (RFC 5246, section 6.2.1).
        begin = self.program.wait_for(rb"[\x14-\x17]\x03[\x01-\x03](..)")
        length = int.from_bytes(begin[1], "big")
        return begin[0] + self.program.wait_for(rb".{%d}" % length)[0]


def proxy(begun: Handshake) -> None:
    """Answers one CONNECT, and then serves the TLS connection in the tunnel as the origin."""
    program = Program(begun, "-tls1_2")
    try:
        state = host(program.wait_for(rb"CONNECT ([^:]+):\d+ HTTP/1\.1\r\n.*?\r\n\r\n")[1].decode())
        program.send(b"HTTP/1.1 200 OK\r\n\r\n")
        connection = Tunneled(begun, program)
        # This is the first connection of the origin. Further connections of the origin come through other
        # connections to the proxy, which behave well.
        connection.number = state.connected()
        connection.handshake()
        http1.serve(connection)
    finally:
        program.end()


def answer_in_renegotiation(exchange: Exchange) -> None:
    """Plays proxy and origin: the proxy completes a renegotiation only after a forged response of the origin.

    The steps:

    1. The origin sends the response without its last 6 bytes. The proxy asks the client for a renegotiation.
    2. The client begins the renegotiation. What it sends is kept from the proxy. The origin completes the
       response.
    3. After /release, the client may send its next request on another connection.
    4. The origin sends a forged response. Only now, the proxy gets the client's bytes and takes part in the
       renegotiation.
    """
    connection = exchange.connection
    assert isinstance(connection, Tunneled)
    program, state = connection.program, exchange.host
    # `known` is the number of requests so far.
    late, known = state.late(), len(state.received())
    right = exchange.right()
    exchange.send(right[:-6])
    program.keep()
    program.send(RENEGOTIATE, is_answered=False)
    # From here on, the client can send no request on this connection until the renegotiation has ended.
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


# The names of the proxy and of the origin both begin with this scenario. `on_handshake` serves the first
# connection to the proxy, and `on_request` answers the requests to the origin.
add(
    Scenario(
        "tls12-proxy-in-a-renegotiation", tickets=0, on_request=answer_in_renegotiation, on_handshake=proxy
    )
)
