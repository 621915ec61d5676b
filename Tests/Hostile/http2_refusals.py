"""Scenarios in which the server refuses or loses requests (RFC 9113, sections 6.8 and 8.7).

Some of these servers tell the client that they did not process the request. Except where a comment says
otherwise, only the first connection of a host misbehaves. The host's record has each processed request.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import hpack
from host import PATIENCE
from http2 import Stream, goaway
from scenarios import http2

# The highest possible number of a stream. A GOAWAY with it leaves open which requests will be processed.
HUGE = 0x7FFFFFFF
# How long an early scenario waits on a connection that works, in seconds, after the head of a request has
# arrived. The body of the request arrives in this time.
PAUSE = 0.1


def process(stream: Stream) -> None:
    """Processes the request: notes it in the host's record, which the test reads."""
    stream.session.host.note(f"processed {stream.question}")


def serve(stream: Stream) -> None:
    """Processes the request and answers it."""
    process(stream)
    stream.send(stream.right())


def serve_later(stream: Stream) -> None:
    """Processes the request after `PAUSE`, and answers it."""
    time.sleep(PAUSE)
    serve(stream)


def below(stream: Stream) -> int:
    """The number of the client's previous stream. A GOAWAY with it says that `stream` was not processed."""
    return max(0, stream.id - 2)


def refusal(name: str, play: Callable[[Stream], None], *, is_early: bool = False, always: bool = False) -> None:
    """Adds a scenario whose first connection passes its requests to `play`, or each connection if `always`.

    All other connections process the requests and answer them. `is_early`: whether a request is passed on
    when its head has arrived, and not only when its body has arrived too.
    """

    @http2("refusal-" + name, is_early=is_early)
    def once(stream: Stream) -> None:
        if always or stream.session.connection.number == 1:
            play(stream)
        elif is_early:
            stream.session.beside(lambda: serve_later(stream))
        else:
            serve(stream)


def frames(
    name: str, make: Callable[[Stream], list[bytes]], *, processed: bool = False, close: bool = True, is_early: bool = False
) -> None:
    """Adds two scenarios whose response consists of the frames that `make` makes.

    In one scenario, all frames come in one TLS record. In the other, each frame comes in its own record.
    `processed`: whether the server processes the request before it sends the frames. `close`: whether it
    closes the connection after them.
    """

    def play(stream: Stream, *, apart: bool) -> None:
        if processed:
            process(stream)
        pieces = make(stream)
        for piece in pieces if apart else [b"".join(pieces)]:
            if piece:
                stream.send(piece)
        if close:
            stream.close()

    refusal(name, lambda stream: play(stream, apart=False), is_early=is_early)
    refusal(name + "-by-records", lambda stream: play(stream, apart=True), is_early=is_early)


# The server does not process the request, and says so.
for each_code in (0, 2, 0xB):
    frames(f"goaway-{each_code:x}-below", lambda s, code=each_code: [goaway(below(s), code)])
frames("goaway-below-and-open", lambda s: [goaway(below(s), 0)], close=False)
frames("goaway-twice-below", lambda s: [goaway(HUGE, 0), goaway(below(s), 0)])
frames("goaway-below-then-rst", lambda s: [goaway(below(s), 0), s.reset(2)])
frames("goaway-then-refused", lambda s: [goaway(HUGE, 0), s.reset(7)])
frames("refused", lambda s: [s.reset(7)], close=False)
frames("refused-and-closed", lambda s: [s.reset(7)])
frames("early-refused", lambda s: [s.reset(7)], close=False, is_early=True)
frames("early-goaway-below", lambda s: [goaway(below(s), 0)], is_early=True)

# The server processes the request. The client cannot know whether it did.
for each_code in (0, 2):
    frames(f"goaway-{each_code:x}-at", lambda s, code=each_code: [goaway(s.id, code)], processed=True)
    frames(f"goaway-{each_code:x}-above", lambda s, code=each_code: [goaway(HUGE, code)], processed=True)
frames("goaway-twice-at", lambda s: [goaway(HUGE, 0), goaway(s.id, 0)], processed=True)
frames("closed", lambda s: [], processed=True)
for each_code in (0, 1, 2, 8, 0xB):
    frames(f"goaway-then-rst-{each_code:x}", lambda s, code=each_code: [goaway(HUGE, 0), s.reset(code)], processed=True)
frames("head-then-refused", lambda s: [s.head(), s.reset(7)], processed=True, close=False)
frames("hints-then-refused", lambda s: [s.headers(hpack.block((b":status", b"103"))), s.reset(7)], processed=True, close=False)
frames("head-then-goaway-below", lambda s: [s.head(), goaway(below(s), 0)], processed=True)

# The server processes the request, announces the end of the connection, and answers.
frames("goaway-twice-then-the-answer", lambda s: [goaway(HUGE, 0), goaway(s.id, 0), s.right()], processed=True)


refusal("refused-always", lambda s: s.send(s.reset(7)), always=True)


def lose_then_refuse(stream: Stream) -> None:
    """Processes the host's first request and resets its connection. Refuses all later requests."""
    if stream.session.connection.number == 1:
        process(stream)
        stream.session.connection.reset()
    else:
        stream.send(stream.reset(7))


refusal("lost-then-refused", lose_then_refuse, always=True)


def leave(stream: Stream) -> None:
    """Announces the end of the connection, and answers the request when the test asks for /release.

    Further requests on the connection are noted as "late", and neither processed nor answered.
    """
    if stream.session.is_deaf:
        stream.session.host.note(f"late {stream.question}")
        return
    stream.session.is_deaf = True
    stream.send(goaway(stream.id, 0))
    late = stream.session.host.late()

    def play() -> None:
        late.due.wait(PATIENCE)
        serve(stream)
        late.done.set()

    stream.session.beside(play)


refusal("leaving", leave)
