"""Renegotiation and new keys in the middle of a connection, which only openssl(1) gives a script the means for."""

from __future__ import annotations

import re
import select
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable

from connection import Gone, Handshake
from host import PATIENCE, Host, host
from scenarios import handshake

# Commands of openssl-s_server(1): renegotiate; send a KeyUpdate; send one that asks for another.
RENEGOTIATE, UPDATE, UPDATE_BOTH = b"r\n", b"k\n", b"K\n"


class Program:
    """One connection that openssl(1) serves: its bytes pass through this process, its text comes from scenarios."""

    def __init__(self, begun: Handshake, version: str) -> None:
        self._client = begun.tcp
        self._directory = tempfile.TemporaryDirectory(prefix="hostile-")
        path = f"{self._directory.name}/socket"
        certificate, key = begun.files
        command = ["openssl", "s_server", "-unix", path, "-naccept", "1", "-cert", certificate, "-key", key]
        self._process = subprocess.Popen(
            [*command, version, "-alpn", "http/1.1", "-num_tickets", "0"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self._printed = b""
        self._passed = threading.Condition()
        # How many records the program has sent to the client, and how many of them were ChangeCipherSpec, which end its part of a handshake.
        self._records = 0
        self._changes = 0
        self._partial = b""
        # What the program has sent and the client does not get yet; `None` when nothing is held back.
        self._held: bytes | None = None
        # The same of what the client has sent and the program does not get yet.
        self._kept: bytes | None = None
        self._heard = threading.Event()
        # Whether the client or the program has ended the connection.
        self._has_ended = False
        self._server = self._connect(path)
        self._server.sendall(begun.hello)
        threading.Thread(target=self._pump_to_program, daemon=True).start()
        threading.Thread(target=self._pump_to_client, daemon=True).start()

    def _connect(self, path: str) -> socket.socket:
        server = socket.socket(socket.AF_UNIX)
        end = time.monotonic() + PATIENCE
        while True:
            try:
                server.connect(path)
                return server
            except OSError as error:
                if self._process.poll() is not None or time.monotonic() > end:
                    raise Gone from error
                time.sleep(0.002)

    def _pump_to_client(self) -> None:
        try:
            while data := self._server.recv(65536):
                # Held while it is sent: what the client does next comes after it is counted, and what is counted has come.
                with self._passed:
                    if self._held is None:
                        self._client.send_raw(data)
                    else:
                        self._held += data
                    self._count(data)
                    self._passed.notify_all()
        except (Gone, OSError):
            pass
        self._end(self._client.sock)

    def _pump_to_program(self) -> None:
        try:
            while data := self._client.receive_raw():
                self._heard.set()
                with self._passed:
                    if self._kept is None:
                        self._server.sendall(data)
                    else:
                        self._kept += data
        except (Gone, OSError):
            pass
        self._end(self._server)

    def _end(self, target: socket.socket) -> None:
        """Nothing more comes for this side."""
        with self._passed:
            self._has_ended = True
            self._passed.notify_all()
        try:
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def _count(self, data: bytes) -> None:
        """Counts the records in what the program has sent (RFC 5246, section 6.2.1)."""
        self._partial += data
        while len(self._partial) >= 5:
            length = 5 + int.from_bytes(self._partial[3:5], "big")
            if len(self._partial) < length:
                break
            self._records += 1
            self._changes += self._partial[0] == 20
            self._partial = self._partial[length:]

    def wait_for(self, pattern: bytes) -> re.Match[bytes]:
        """Waits until the program has printed something, and forgets what is printed up to there."""
        assert self._process.stdout is not None
        while not (found := re.search(pattern, self._printed, re.DOTALL)):
            if not select.select([self._process.stdout], [], [], PATIENCE)[0]:
                raise Gone
            data = self._process.stdout.read1(65536)  # type: ignore[attr-defined]
            if not data:
                raise Gone
            self._printed += data
        self._printed = self._printed[found.end() :]
        return found

    def send(self, data: bytes, *, is_answered: bool = True) -> None:
        """Gives the program a command, or bytes for the client that do not begin with one; waits until it has done it, as far as it can
        without the client when that does not read.

        What it reads together with something else would be no command, or be lost behind one. A renegotiation has several records, and
        those of one must not be taken for the beginning of the next.
        """
        assert self._process.stdin is not None
        has_changes = data == RENEGOTIATE and is_answered
        with self._passed:
            before = self._changes if has_changes else self._records
            try:
                self._process.stdin.write(data)
                self._process.stdin.flush()
            except OSError as error:
                raise Gone from error

            def is_done() -> bool:
                return (self._changes if has_changes else self._records) > before

            self._passed.wait_for(lambda: is_done() or self._has_ended, PATIENCE)
            if not is_done():
                raise Gone

    def hold(self) -> None:
        """Keeps back what the program sends from now on."""
        with self._passed:
            self._held = b""
            self._heard.clear()

    def release(self, delay: float) -> None:
        """Passes on what was kept back, some time after the client has sent something."""
        self._heard.wait(PATIENCE)
        time.sleep(delay)
        with self._passed:
            self._client.send_raw(self._held or b"")
            self._held = None

    def keep(self) -> None:
        """Keeps from the program what the client sends from now on."""
        with self._passed:
            self._kept = b""
            self._heard.clear()

    def wait_for_client(self) -> None:
        """Waits until the client has sent something that is kept."""
        if not self._heard.wait(PATIENCE):
            raise Gone

    def give(self) -> None:
        """Passes on to the program what was kept from it."""
        with self._passed:
            self._server.sendall(self._kept or b"")
            self._kept = None

    def end(self) -> None:
        """Ends the program and waits for its end."""
        self._process.kill()
        self._process.wait()
        self._server.close()
        self._directory.cleanup()


Answer = Callable[[Program, bytes, Host], None]


def control(name: str, version: str, answer: Answer) -> None:
    """Adds a scenario whose first connection is served by openssl(1).

    `answer` answers the requests. Requests for /right get the right response.
    """

    @handshake(name)
    def play(begun: Handshake) -> None:
        program = Program(begun, version)
        try:
            while True:
                found = program.wait_for(rb"([A-Z]+) (/\S*q=(\d+)) HTTP/1\.1\r\nHost: ([^\r]*)\r\n.*?\r\n\r\n")
                state = host(found[4].decode())
                state.note(f"{found[1].decode()} {found[3].decode()}")
                body = b"answer " + found[3]
                fields = b"Cache-Control: max-age=3600\r\nX-Answer: %s\r\nX-Connection: 1\r\n" % found[3]
                whole = b"HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n" % (fields, len(body)) + body
                if found[2].startswith(b"/right"):
                    program.send(whole)
                else:
                    answer(program, whole, state)
        finally:
            program.end()


def before(letter: bytes, count: int = 1) -> Answer:
    """Gives openssl(1) a command before the response."""

    def answer(program: Program, whole: bytes, state: Host) -> None:
        for _ in range(count):
            program.send(letter)
        program.send(whole)

    return answer


def within(letter: bytes, count: int = 1) -> Answer:
    """Gives openssl(1) a command in the middle of the response."""

    def answer(program: Program, whole: bytes, state: Host) -> None:
        program.send(whole[:-6])
        for _ in range(count):
            program.send(letter)
        program.send(whole[-6:])

    return answer


def behind(letter: bytes) -> Answer:
    """Gives openssl(1) a command while the connection is idle."""

    def answer(program: Program, whole: bytes, state: Host) -> None:
        late = state.late()
        program.send(whole)
        late.due.wait(PATIENCE)
        try:
            program.send(letter, is_answered=False)
        except Gone:
            pass
        late.done.set()

    return answer


def answer_in_renegotiation(program: Program, whole: bytes, state: Host) -> None:
    """Asks for a renegotiation while the connection is idle.

    A forged response follows the client's part of the renegotiation.
    """
    late = state.late()
    program.send(whole)
    late.due.wait(PATIENCE)
    try:
        program.send(RENEGOTIATE, is_answered=False)
        program.hold()
        program.send(b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nforged answer")
        late.done.set()
        program.release(0.2)
    except (Gone, OSError):
        late.done.set()


control("tls12-answer-in-a-renegotiation", "-tls1_2", answer_in_renegotiation)
control("tls12-renegotiation-before-the-head", "-tls1_2", before(RENEGOTIATE))
control("tls12-renegotiation-in-the-body", "-tls1_2", within(RENEGOTIATE))
control("tls12-renegotiation-late", "-tls1_2", behind(RENEGOTIATE))
control("tls12-renegotiation-20-times", "-tls1_2", within(RENEGOTIATE, 20))
for each_name, each_letter in (("update", UPDATE), ("update-both", UPDATE_BOTH)):
    control(f"tls13-key-{each_name}-before-the-head", "-tls1_3", before(each_letter))
    control(f"tls13-key-{each_name}-in-the-body", "-tls1_3", within(each_letter))
    control(f"tls13-key-{each_name}-late", "-tls1_3", behind(each_letter))
    control(f"tls13-key-{each_name}-200-times", "-tls1_3", within(each_letter, 200))
