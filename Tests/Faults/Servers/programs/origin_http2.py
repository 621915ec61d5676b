"""HTTP/2 of the fault matrix's server (RFC 9113): the parts that curl and netopt use."""

from __future__ import annotations

import struct
import time

import hpack
from http2 import (
    ACK, DATA, END_HEADERS, END_STREAM, GOAWAY, HAS_PRIORITY, HEADERS, PADDED, PING, PREFACE, RST_STREAM, SETTINGS,
    WINDOW_UPDATE, frame, goaway, settings,
)
from origin_answer import Question
from origin_connection import TLS
from origin_http1 import LIMIT_REQUESTS, LIMIT_SECONDS

# Identifiers of settings (section 6.5.2).
HEADER_TABLE_SIZE, MAX_STREAMS, WINDOW_SIZE = 1, 3, 4
# The error code of a refused stream (section 7).
REFUSED_STREAM = 7
# The window for each stream in bytes. The window of the connection is larger by the initial 65,535 bytes.
WINDOW = 1 << 24
# A round trip time in seconds.
ROUND_TRIP = 0.1
# The maximum number of streams at once, without a fault that changes it.
USUAL_LIMIT = 128
# The maximum number of streams at once, by the fault.
LIMITS = {
    "max-streams-1": 1, "late-limit": 1, "max-streams-0": 0, "refused-streams": USUAL_LIMIT, "held-streams": 1,
}


class Session:
    """An HTTP/2 connection.

    It ignores the client's WINDOW_UPDATE frames, because it sends less than the 32 MiB that libcurl lets a
    server send without them.
    """

    def __init__(self, connection: TLS) -> None:
        self._connection = connection
        self._origin = connection.origin
        self._decoder = hpack.Decoder()
        self._pending = b""
        # The requests that the server has not answered, by stream.
        self._open: dict[int, Question] = {}
        # The last stream that the GOAWAY names; `None` before the GOAWAY.
        self._last: int | None = None
        # When the GOAWAY was sent, in seconds of the monotonic clock.
        self._said = 0.0
        # The highest stream whose request the server has taken.
        self._highest = 0
        # The maximum number of streams at once that the client was told.
        self._streams = USUAL_LIMIT

    def serve(self) -> None:
        """Answers requests until the connection ends."""
        self._streams = LIMITS.get(self._origin.fault, USUAL_LIMIT)
        if next(self._origin.sessions) == 0 and self._origin.fault == "late-limit":
            self._await_requests(2)
        elif self._streams == 1:
            # Simulates a path with this round trip time: the client sends requests before it knows the limit.
            time.sleep(ROUND_TRIP)
        # A table size of 0 keeps the client from using a dynamic table. The decoder cannot evict entries.
        self._send(settings((HEADER_TABLE_SIZE, 0), (MAX_STREAMS, self._streams), (WINDOW_SIZE, WINDOW)))
        self._send(frame(WINDOW_UPDATE, 0, 0, struct.pack("!I", WINDOW)))
        self._read(len(PREFACE))
        while True:
            length = int.from_bytes(self._read(3), "big")
            kind, flags, number = struct.unpack("!BBI", self._read(6))
            self._take(kind, flags, number & 0x7FFFFFFF, self._read(length))

    def _send(self, data: bytes) -> None:
        self._connection.send(data)

    def _read(self, count: int) -> bytes:
        """Reads `count` bytes, and does the timed work while no bytes arrive."""
        while len(self._pending) < count:
            while not self._connection.wait(0.02):
                self._duties()
            self._pending += self._connection.receive()
        data, self._pending = self._pending[:count], self._pending[count:]
        return data

    def _await_requests(self, count: int) -> None:
        """Waits until the client has sent the heads of `count` requests. Moves the heads before all other frames
        in `_pending`, like a server that reads several requests before it answers the first."""
        while True:
            frames, rest = self._pending_frames()
            heads = [each for each in frames if each[3] == HEADERS]
            if len(heads) >= count:
                break
            self._connection.wait()
            self._pending += self._connection.receive()
        others = [each for each in frames if each[3] != HEADERS]
        self._pending = self._pending[: len(PREFACE)] + b"".join(heads + others) + rest

    def _pending_frames(self) -> tuple[list[bytes], bytes]:
        """The frames in `_pending`, which begins with the preface, and the bytes of an incomplete last frame."""
        frames, rest = [], self._pending[len(PREFACE) :]
        while len(rest) >= 9 and len(rest) >= (size := 9 + int.from_bytes(rest[:3], "big")):
            frames.append(rest[:size])
            rest = rest[size:]
        return frames, rest

    def _duties(self) -> None:
        """Does the timed work: follows changes of the fault, and ends old connections."""
        now = time.monotonic()
        self._adopt_limit()
        if self._origin.fault == "goaway-time" and self._highest and now - self._connection.opened > LIMIT_SECONDS:
            self._leave()
        # For 0.1 s after the GOAWAY, the server reads the requests that the client sent before it read the
        # GOAWAY, and logs them as refused. Then it ends the connection, which the client cannot use any more.
        if self._last is not None and not self._open and now - self._said > 0.1:
            self._connection.finish()

    def _adopt_limit(self) -> None:
        """Follows a change of the limit of streams. Tells the client a new limit other than 1.

        A limit of 1 applies only to new connections, like a server after a change of its configuration. Old
        connections end in order.
        """
        limit = LIMITS.get(self._origin.fault, USUAL_LIMIT)
        if limit == 1 and self._streams > 1:
            self._leave()
        elif limit != self._streams:
            self._streams = limit
            self._send(settings((MAX_STREAMS, limit)))

    def _leave(self) -> None:
        """Sends a GOAWAY whose last stream is the highest stream so far, unless a GOAWAY was sent."""
        if self._last is None:
            self._last, self._said = self._highest, time.monotonic()
            self._send(goaway(self._last, 0))

    def _take(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        """Handles a frame of the stream `number`."""
        if kind == SETTINGS and not flags & ACK:
            self._send(frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            self._send(frame(PING, ACK, 0, payload))
        elif kind == GOAWAY:
            self._connection.finish()
        elif kind == HEADERS:
            if flags & PADDED:
                payload = payload[1 : len(payload) - payload[0]]
            if flags & HAS_PRIORITY:
                payload = payload[5:]
            self._begin(number, Question(self._decoder.decode(payload).get(b":path", b"").decode()))
        elif kind == DATA and number in self._open:
            self._open[number].received += payload
            if payload:
                update = struct.pack("!I", len(payload))
                self._send(frame(WINDOW_UPDATE, 0, 0, update) + frame(WINDOW_UPDATE, 0, number, update))
        if flags & END_STREAM and kind in (HEADERS, DATA) and number in self._open and self._origin.fault != "held-streams":
            self._answer(number, self._open.pop(number))

    def _begin(self, number: int, question: Question) -> None:
        """Takes a request whose head has arrived, or refuses it."""
        if self._origin.fault == "keep-alive-race" and self._connection.requests:
            self._connection.reset()
        self._adopt_limit()
        if self._last is not None and number > self._last:
            self._origin.note("refuse", question.id)
            return
        if len(self._open) >= self._streams or self._origin.fault == "refused-streams":
            self._origin.note("refuse", question.id)
            self._send(frame(RST_STREAM, 0, number, struct.pack("!I", REFUSED_STREAM)))
            return
        self._highest = max(self._highest, number)
        self._connection.requests += 1
        self._open[number] = question
        self._origin.note("arrive", question.id)
        if self._origin.fault == "goaway-requests" and self._connection.requests >= LIMIT_REQUESTS:
            self._leave()

    def _answer(self, number: int, question: Question) -> None:
        """Answers one request according to the fault."""
        fault, body = self._origin.fault, question.answer()
        fields = ((b":status", b"200"), (b"content-length", b"%d" % len(body)), (b"x-id", question.id.encode()))
        block = hpack.block(*fields, (b"x-origin", self._origin.name.encode()))
        head = frame(HEADERS, END_HEADERS, number, block)
        if fault == "tls-silent":
            return
        if fault == "reset-before-head":
            self._connection.reset()
        elif fault == "reset-in-head":
            self._send(head[:20])
            self._connection.reset()
        elif fault == "reset-after-head":
            self._send(head)
            self._connection.reset()
        whole = fault not in ("cut-body", "stall")
        self._send(head + self._data(number, body if whole else body[: len(body) // 2], whole))
        if fault == "cut-body":
            self._connection.finish()

    @staticmethod
    def _data(number: int, body: bytes, whole: bool) -> bytes:
        """The DATA frames with a body. They end the stream if the body is whole."""
        pieces = [body[at : at + 16384] for at in range(0, len(body), 16384)] or [b""]
        return b"".join(
            frame(DATA, END_STREAM if whole and at == len(pieces) - 1 else 0, number, piece)
            for at, piece in enumerate(pieces)
        )
