"""Servers that refuse or lose requests, with or without telling so (RFC 9113, sections 6.8 and 8.7).

Only the first connection of a host misbehaves. The host notes each processed request.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import hpack
from host import PATIENCE
from http2 import Stream, goaway
from scenarios import http2

HUGE = 0x7FFFFFFF
# For the body of a request that is answered when its head is there.
PAUSE = 0.1


def process(stream: Stream) -> None:
    """Processes the request: notes it in the host's record, which the test reads."""
    stream.session.host.note(f"processed {stream.question}")


def serve(stream: Stream) -> None:
    """Processes the request and answers it."""
    process(stream)
    stream.send(stream.right())


def serve_later(stream: Stream) -> None:
    time.sleep(PAUSE)
    serve(stream)


def below(stream: Stream) -> int:
    """The number of the previous stream of the client."""
    return max(0, stream.id - 2)


def refusal(name: str, play: Callable[[Stream], None], *, is_early: bool = False, always: bool = False) -> None:
    """Adds a scenario whose first connection plays `play`, or each connection if `always`.

    All other connections serve the requests.
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
    """Adds two scenarios whose response is these frames: in one TLS record, and in several.

    `processed`: whether the server processes the request before.
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


# Not processed, and the server says so.
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

# Perhaps processed.
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

# Answered in the end.
frames("goaway-twice-then-the-answer", lambda s: [goaway(HUGE, 0), goaway(s.id, 0), s.right()], processed=True)


refusal("refused-always", lambda s: s.send(s.reset(7)), always=True)


def lose_then_refuse(stream: Stream) -> None:
    """Processes the first request and resets its connection; refuses all later ones."""
    if stream.session.connection.number == 1:
        process(stream)
        stream.session.connection.reset()
    else:
        stream.send(stream.reset(7))


refusal("lost-then-refused", lose_then_refuse, always=True)


def leave(stream: Stream) -> None:
    """Announces the end of the connection, and answers when the test says so. What else comes on the connection is not processed."""
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
