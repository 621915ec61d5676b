"""The table of scenarios: what the server does with one request, or with one TLS handshake."""

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
    """One misbehaviour. Where a function is `None`, the server behaves as the protocol says."""

    name: str
    # The application protocol that the server picks when it is offered.
    protocol: str = "http/1.1"
    # The highest version of TLS: 2 or 3.
    tls: int = 3
    # How many session tickets a TLS 1.3 handshake gives.
    tickets: int = 2
    on_request: Callable[[Exchange], None] | None = None
    on_stream: Callable[[Stream], None] | None = None
    # Whether `on_stream` comes with the head of a request, and not with its end.
    is_early: bool = False
    # Answers the first `width` requests of a host's first connection, when they are there.
    on_streams: Callable[[list[Stream]], None] | None = None
    width: int = 4
    # In the place of the server's HTTP/2 preface. Only on the first connection of a host.
    on_session: Callable[[Session], None] | None = None
    # Answers the second CONNECT to a host that has had two requests through the first one.
    on_second_tunnel: Callable[[Connection], None] | None = None
    # In the place of the TLS handshake. Only on the first connection of a host.
    on_handshake: Callable[[Handshake], None] | None = None


TABLE: dict[str, Scenario] = {}


def add(scenario: Scenario) -> None:
    """Adds a scenario to the table."""
    if scenario.name in TABLE:
        raise ValueError(f"there are two scenarios named {scenario.name}")
    if len(scenario.name) > 50:
        raise ValueError(f"{scenario.name} leaves no room for a number in a DNS label")
    TABLE[scenario.name] = scenario


Play1 = Callable[["Exchange"], None]
Play2 = Callable[["Stream"], None]


def http1(name: str, *, tls: int = 3, tickets: int = 2) -> Callable[[Play1], Play1]:
    """Decorates a function that responds to an HTTP/1.1 request."""

    def register(play: Play1) -> Play1:
        add(Scenario(name, tls=tls, tickets=tickets, on_request=play))
        return play

    return register


def http1_bytes(name: str, make: Callable[[Exchange], bytes], *, then: str = "wait") -> None:
    """Adds a scenario whose HTTP/1.1 response is sent in one piece.

    `then` says what follows: "wait" for the next request, "close", or "reset".
    """

    def play(exchange: Exchange) -> None:
        exchange.send(make(exchange))
        if then == "close":
            exchange.close()
        elif then == "reset":
            exchange.reset()

    add(Scenario(name, on_request=play))


def http2(name: str, *, is_early: bool = False) -> Callable[[Play2], Play2]:
    """Decorates a function that responds to an HTTP/2 request. Puts "h2-" before the scenario's name."""

    def register(play: Play2) -> Play2:
        add(Scenario("h2-" + name, protocol="h2", on_stream=play, is_early=is_early))
        return play

    return register


def http2_together(name: str, *, width: int = 4) -> Callable[[Callable[[list[Stream]], None]], None]:
    """Decorates a function that responds to several HTTP/2 requests of one connection at once.

    Puts "h2-together-" before the scenario's name.
    """

    def register(play: Callable[[list[Stream]], None]) -> None:
        add(Scenario("h2-together-" + name, protocol="h2", on_streams=play, width=width))

    return register


def http2_start(name: str) -> Callable[[Callable[[Session], None]], Callable[[Session], None]]:
    """Decorates a function that begins a host's first HTTP/2 connection instead of the server's preface.

    Puts "h2-" before the scenario's name.
    """

    def register(play: Callable[[Session], None]) -> Callable[[Session], None]:
        add(Scenario("h2-" + name, protocol="h2", on_session=play))
        return play

    return register


def handshake(
    name: str, *, tls: int = 3, protocol: str = "http/1.1", tickets: int = 2
) -> Callable[[Callable[[Handshake], None]], Callable[[Handshake], None]]:
    """Decorates a function that replaces the first TLS handshake of a host."""

    def register(play: Callable[[Handshake], None]) -> Callable[[Handshake], None]:
        add(Scenario(name, protocol=protocol, tls=tls, tickets=tickets, on_handshake=play))
        return play

    return register
