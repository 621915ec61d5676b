"""Scenarios with a renegotiation (TLS 1.2) or a KeyUpdate (TLS 1.3) in the middle of a connection.

Python's module ssl can start neither of them, so openssl-s_server(1) serves these connections.
"""

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

# Commands of openssl-s_server(1), which it reads from its standard input: start a renegotiation; send a
# KeyUpdate; send a KeyUpdate that asks the client for a KeyUpdate.
RENEGOTIATE, UPDATE, UPDATE_BOTH = b"r\n", b"k\n", b"K\n"


class Program:
    """A process of openssl-s_server(1) that serves one connection, called the program below.

    Scenarios write responses and commands to its standard input. It prints what it receives from the client,
    decrypted. The TLS records of both sides pass through this process, which can hold them back.
    """

    def __init__(self, begun: Handshake, version: str) -> None:
        """Starts the program with an option for the version of TLS, such as "-tls1_2"."""
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
        # What the program has printed and `wait_for` has not consumed.
        self._printed = b""
        # Guards the fields below. Notified when the program has sent bytes, and when the connection has
        # ended.
        self._passed = threading.Condition()
        # The number of records that the program has sent.
        self._records = 0
        # How many of these records were ChangeCipherSpec. The program sends one near the end of each
        # handshake.
        self._changes = 0
        # The beginning of a record of the program whose end has not come yet.
        self._partial = b""
        # Bytes of the program that are held back from the client. `None` when bytes are passed on at once.
        self._held: bytes | None = None
        # Bytes of the client that are kept from the program. `None` when bytes are passed on at once.
        self._kept: bytes | None = None
        # Whether the client has sent anything since the last call of `hold` or `keep`.
        self._heard = threading.Event()
        # Whether the client or the program has ended the connection.
        self._has_ended = False
        self._server = self._connect(path)
        self._server.sendall(begun.hello)
        threading.Thread(target=self._pump_to_program, daemon=True).start()
        threading.Thread(target=self._pump_to_client, daemon=True).start()

    def _connect(self, path: str) -> socket.socket:
        """Connects to the program's socket as soon as the program listens."""
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
        """Passes the program's bytes on to the client, until one side ends the connection."""
        try:
            while data := self._server.recv(65536):
                # The lock is held from the sending to the counting. So records that are counted have been
                # sent, and a reaction of the client is handled only after the records have been counted.
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
        """Passes the client's bytes on to the program, until one side ends the connection."""
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
        """Records that one side has ended the connection, and sends FIN to the other side (`target`)."""
        with self._passed:
            self._has_ended = True
            self._passed.notify_all()
        try:
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def _count(self, data: bytes) -> None:
        """Counts the records in bytes that the program has sent (RFC 5246, section 6.2.1)."""
        self._partial += data
        while len(self._partial) >= 5:
            length = 5 + int.from_bytes(self._partial[3:5], "big")
            if len(self._partial) < length:
                break
            self._records += 1
            self._changes += self._partial[0] == 20
            self._partial = self._partial[length:]

    def wait_for(self, pattern: bytes) -> re.Match[bytes]:
        """Waits until the program has printed a match of `pattern`, and drops the text up to its end."""
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
        """Gives the program a command, or bytes for the client, and waits until the program has acted.

        Bytes for the client must not begin with the letter of a command. The wait is necessary because the
        program must read each command alone: with bytes before it, it would be no command, and bytes after it
        would be lost.

        The program has acted when it has sent a record. A renegotiation has several records, and has ended
        when the program has sent ChangeCipherSpec. `is_answered`: whether to wait for that. It is false when
        the client does not read at the moment.
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
        """Holds back what the program sends to the client from now on."""
        with self._passed:
            self._held = b""
            self._heard.clear()

    def release(self, delay: float) -> None:
        """Passes on what was held back, `delay` seconds after the client has sent something."""
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
        """Passes on to the program what `keep` has kept from it."""
        with self._passed:
            self._server.sendall(self._kept or b"")
            self._kept = None

    def end(self) -> None:
        """Ends the program and waits for its end."""
        self._process.kill()
        self._process.wait()
        self._server.close()
        self._directory.cleanup()


# Answers a request with a program. The bytes are the whole right response.
Answer = Callable[[Program, bytes, Host], None]


def control(name: str, version: str, answer: Answer) -> None:
    """Adds a scenario in which openssl(1) serves the first connection of a host.

    `version` is an option of openssl(1), such as "-tls1_2". `answer` answers the requests, except those for
    /right, which get the right response.
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
    """Returns an answer that gives openssl(1) a command `count` times, before the response."""

    def answer(program: Program, whole: bytes, state: Host) -> None:
        for _ in range(count):
            program.send(letter)
        program.send(whole)

    return answer


def within(letter: bytes, count: int = 1) -> Answer:
    """Returns an answer that gives openssl(1) a command `count` times, in the middle of the response."""

    def answer(program: Program, whole: bytes, state: Host) -> None:
        program.send(whole[:-6])
        for _ in range(count):
            program.send(letter)
        program.send(whole[-6:])

    return answer


def behind(letter: bytes) -> Answer:
    """Returns an answer that gives openssl(1) a command after the response.

    The command comes when the test asks for /release. The connection is idle then.
    """

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
    """Asks for a renegotiation while the connection is idle, and sends a forged response at once.

    The forged response is held back. It reaches the client 0.2 s after the client has begun the
    renegotiation.
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
