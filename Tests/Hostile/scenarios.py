"""The table of scenarios. A scenario says how the server answers a request or performs a TLS handshake."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from connection import Connection, Handshake
    from http1 import Exchange
    from http2 import Session, Stream


@dataclass(frozen=True)
class Scenario:
    """One misbehaviour. For each function that is `None`, the server behaves as the protocol says."""

    # The first label of the host's name, up to "--".
    name: str
    # The application protocol that the server selects when the client offers it (ALPN).
    protocol: str = "http/1.1"
    # The highest version of TLS that the server accepts: 2 stands for TLS 1.2, 3 for TLS 1.3.
    tls: int = 3
    # How many session tickets the server sends after a TLS 1.3 handshake.
    tickets: int = 2
    # Answers an HTTP/1.1 request.
    on_request: Callable[[Exchange], None] | None = None
    # Answers an HTTP/2 request.
    on_stream: Callable[[Stream], None] | None = None
    # Whether `on_request` or `on_stream` is called when the head of a request has arrived. If false, it is
    # called when the request has ended.
    is_early: bool = False
    # Answers the first `width` requests of a host's first connection together, when the last of them has
    # arrived. Requests for /right do not count.
    on_streams: Callable[[list[Stream]], None] | None = None
    width: int = 4
    # Sends what a host's first connection begins with, instead of the server's HTTP/2 preface.
    on_session: Callable[[Session], None] | None = None
    # Answers the second CONNECT to a host, if the host has received two requests before.
    on_second_tunnel: Callable[[Connection], None] | None = None
    # Serves the first TLS connection of a host, beginning with the handshake.
    on_handshake: Callable[[Handshake], None] | None = None


# All scenarios, by their names.
TABLE: dict[str, Scenario] = {}


def add(scenario: Scenario) -> None:
    """Adds a scenario to the table. The name must be new, and at most 50 characters long."""
    if scenario.name in TABLE:
        raise ValueError(f"there are two scenarios named {scenario.name}")
    if len(scenario.name) > 50:
        raise ValueError(f"{scenario.name} leaves no room for a number in a DNS label")
    TABLE[scenario.name] = scenario


# Answers an HTTP/1.1 request.
Play1 = Callable[["Exchange"], None]
# Answers an HTTP/2 request.
Play2 = Callable[["Stream"], None]


def http1(name: str, *, tls: int = 3, tickets: int = 2, is_early: bool = False) -> Callable[[Play1], Play1]:
    """Decorates a function that answers an HTTP/1.1 request: adds it to the table as a scenario."""

    def register(play: Play1) -> Play1:
        add(Scenario(name, tls=tls, tickets=tickets, on_request=play, is_early=is_early))
        return play

    return register


def http1_bytes(name: str, make: Callable[[Exchange], bytes], *, then: str = "wait") -> None:
    """Adds a scenario whose HTTP/1.1 response consists of the bytes that `make` makes, sent in one piece.

    `then` says what the server does next: "wait" for the next request, "close" the connection, or "reset" it.
    """

    def play(exchange: Exchange) -> None:
        exchange.send(make(exchange))
        if then == "close":
            exchange.close()
        elif then == "reset":
            exchange.reset()

    add(Scenario(name, on_request=play))


def http2(name: str, *, is_early: bool = False) -> Callable[[Play2], Play2]:
    """Decorates a function that answers an HTTP/2 request. Puts "h2-" before the scenario's name."""

    def register(play: Play2) -> Play2:
        add(Scenario("h2-" + name, protocol="h2", on_stream=play, is_early=is_early))
        return play

    return register


def http2_together(name: str, *, width: int = 4) -> Callable[[Callable[[list[Stream]], None]], None]:
    """Decorates a function that answers the first `width` HTTP/2 requests of a connection together.

    Puts "h2-together-" before the scenario's name.
    """

    def register(play: Callable[[list[Stream]], None]) -> None:
        add(Scenario("h2-together-" + name, protocol="h2", on_streams=play, width=width))

    return register


def http2_start(name: str) -> Callable[[Callable[[Session], None]], Callable[[Session], None]]:
    """Decorates a function that begins a host's first HTTP/2 connection, instead of the server's preface.

    Puts "h2-" before the scenario's name.
    """

    def register(play: Callable[[Session], None]) -> Callable[[Session], None]:
        add(Scenario("h2-" + name, protocol="h2", on_session=play))
        return play

    return register


def handshake(
    name: str, *, tls: int = 3, protocol: str = "http/1.1", tickets: int = 2
) -> Callable[[Callable[[Handshake], None]], Callable[[Handshake], None]]:
    """Decorates a function that serves the first TLS connection of a host, beginning with the handshake."""

    def register(play: Callable[[Handshake], None]) -> Callable[[Handshake], None]:
        add(Scenario(name, protocol=protocol, tls=tls, tickets=tickets, on_handshake=play))
        return play

    return register
