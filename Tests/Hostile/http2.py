"""The server's side of HTTP/2: frames, connections, right responses.

Sections in comments are those of RFC 9113.
"""

from __future__ import annotations

import hashlib
import re
import struct
import threading
from collections.abc import Callable

import hpack
from connection import Connection, Gone
from host import PATIENCE, Host
from scenarios import TABLE, Scenario

# The types of frames (section 6).
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
# The flags of frames. HAS_PRIORITY is the flag PRIORITY of HEADERS.
END_STREAM, ACK, END_HEADERS, PADDED, HAS_PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20
# The first bytes that a client sends (section 3.4).
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """The bytes of a frame (section 4.1). `kind` is its type, `stream` the number of its stream."""
    return len(payload).to_bytes(3, "big") + struct.pack("!BBI", kind, flags, stream) + payload


def settings(*pairs: tuple[int, int]) -> bytes:
    """A SETTINGS frame (section 6.5). Each pair is the number of a setting and its value."""
    return frame(SETTINGS, 0, 0, b"".join(struct.pack("!HI", *pair) for pair in pairs))


def goaway(last: int, code: int, debug: bytes = b"") -> bytes:
    """A GOAWAY frame (section 6.8).

    `last` is the highest number of a stream that the server may have processed, `code` the error code.
    """
    return frame(GOAWAY, 0, 0, struct.pack("!II", last, code) + debug)


class Stream:
    """One request, and the functions that respond to it."""

    def __init__(self, session: Session, number: int, fields: dict[bytes, bytes]) -> None:
        self.session = session
        self.id = number
        self.method = fields.get(b":method", b"")
        self.path = fields.get(b":path", b"")
        # The test's number of the request, from the path's `q=`. Every right response carries it.
        found = re.search(rb"q=(\d+)", self.path)
        self.question = int(found[1]) if found else 0
        # The digest of the part of the request's body that has arrived.
        self.digest = hashlib.sha256()

    @property
    def body(self) -> bytes:
        """The body of the right response."""
        return b"answer %d" % self.question

    @property
    def fields(self) -> tuple[tuple[bytes, bytes], ...]:
        """The fields of the right response: cacheable, with the numbers of the request and the connection."""
        return (
            (b":status", b"200"),
            (b"cache-control", b"max-age=3600"),
            (b"x-answer", b"%d" % self.question),
            (b"x-connection", b"%d" % self.session.connection.number),
        )

    def send(self, data: bytes) -> None:
        self.session.send(data)

    def frame(self, kind: int, flags: int, payload: bytes = b"") -> bytes:
        """A frame of this stream."""
        return frame(kind, flags, self.id, payload)

    def head(self, *more: tuple[bytes, bytes], end: bool = False) -> bytes:
        """The head of the right response, with further fields."""
        return self.headers(hpack.block(*self.fields, *more), end=end)

    def headers(self, block: bytes, *, end: bool = False) -> bytes:
        """A HEADERS frame with a whole field block. `end`: whether the stream ends with it."""
        return self.frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), block)

    def data(self, data: bytes | None = None, *, end: bool = False) -> bytes:
        """A DATA frame, by default with the whole right body. `end`: whether the stream ends with it."""
        return self.frame(DATA, END_STREAM if end else 0, self.body if data is None else data)

    def right(self) -> bytes:
        """The whole right response."""
        return self.head() + self.data(end=True)

    def reset(self, code: int) -> bytes:
        """A RST_STREAM frame with this error code."""
        return self.frame(RST_STREAM, 0, struct.pack("!I", code))

    def close(self) -> None:
        """Closes the connection, with all its streams."""
        self.session.connection.close()

    def flood(self, piece: bytes, *, first: bytes = b"", most: int = 1 << 30) -> None:
        """Sends `first`, and then `piece` again and again.

        Ends when the client has closed the connection (raises `Gone`), or after `most` bytes.
        """
        self.send(first)
        block = piece * max(1, 65536 // len(piece))
        for _ in range(most // len(block)):
            self.send(block)

    def send_right_then_late(self, later: bytes) -> None:
        """Sends the right response now, and the frames `later` when the test releases them with /release."""
        # The frames are announced before the response is sent, because the test may release them as soon as
        # the client has the response.
        late = self.session.host.late()
        self.send(self.right())
        late.due.wait(PATIENCE)
        try:
            self.send(later)
        except Gone:
            pass
        late.done.set()


class Session:
    """An HTTP/2 connection."""

    def __init__(self, connection: Connection, host: Host) -> None:
        self.connection = connection
        self.host = host
        self.scenario: Scenario | None = TABLE.get(host.scenario)
        self._decoder = hpack.Decoder()
        # Received bytes that are not parsed yet.
        self._pending = b""
        # Held while a thread sends, so that the data of several threads is not mixed.
        self._lock = threading.Lock()
        # The part of a request's field block that has arrived so far.
        self._block = b""
        # By their numbers, the requests whose heads have arrived and that are not answered yet.
        self._open: dict[int, Stream] = {}
        # Whether a scenario has stopped reading from this connection, for a time or to answer no further request.
        # Set and read only by scenarios.
        self.is_deaf = False
        # The streams for which `on_streams` will be called once, when there are `width` of them.
        self._together: list[Stream] = []

    def send(self, data: bytes) -> None:
        with self._lock:
            self.connection.send(data)

    def beside(self, play: Callable[[], None]) -> None:
        """Runs `play` on a new thread, while the session's thread reads further requests."""

        def run() -> None:
            try:
                play()
            except Gone:
                pass

        threading.Thread(target=run, daemon=True).start()

    def serve(self) -> None:
        """Responds to the requests of the connection until one side ends the connection."""
        play = self.scenario.on_session if self.scenario else None
        if play is not None and self.connection.number == 1:
            play(self)
        else:
            self.send(settings())
        self._read(len(PREFACE))
        while True:
            length = int.from_bytes(self._read(3), "big")
            kind, flags, number = struct.unpack("!BBI", self._read(6))
            self._take(kind, flags, number & 0x7FFFFFFF, self._read(length))

    def _read(self, count: int) -> bytes:
        """Returns the next `count` bytes from the client."""
        while len(self._pending) < count:
            self._pending += self.connection.receive()
        data, self._pending = self._pending[:count], self._pending[count:]
        return data

    def _take(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        """Handles a frame of the client.

        Acknowledges SETTINGS and PING. Answers a request when it has ended, or when its head has ended if the
        scenario is early.
        """
        if kind == SETTINGS and not flags & ACK:
            self.send(frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            self.send(frame(PING, ACK, 0, payload))
        elif kind in (HEADERS, CONTINUATION):
            if kind == HEADERS and flags & PADDED:
                payload = payload[1 : len(payload) - payload[0]]
            if kind == HEADERS and flags & HAS_PRIORITY:
                payload = payload[5:]
            self._block += payload
            if flags & END_HEADERS:
                self._open[number] = Stream(self, number, self._decoder.decode(self._block))
                self._block = b""
        elif kind == DATA and number in self._open:
            self._open[number].digest.update(payload)
        if number in self._open:
            is_early = self.scenario is not None and self.scenario.is_early
            if kind in (DATA, HEADERS) and flags & END_STREAM or is_early and flags & END_HEADERS:
                self._answer(self._open.pop(number))

    def _answer(self, stream: Stream) -> None:
        """Notes a request and answers it: rightly if it is for /right, otherwise as the scenario says."""
        self.host.note(f"{stream.method.decode()} {stream.question}")
        scenario = self.scenario
        if stream.path.startswith(b"/right") or scenario is None:
            stream.send(stream.right())
        elif scenario.on_streams is not None and self.connection.number == 1 and len(self._together) < scenario.width:
            self._together.append(stream)
            if len(self._together) == scenario.width:
                scenario.on_streams(self._together)
        elif scenario.on_stream is not None:
            scenario.on_stream(stream)
        else:
            stream.send(stream.right())
