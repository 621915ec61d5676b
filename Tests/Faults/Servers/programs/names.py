"""A name server of the fault matrix (RFC 1035) that gives a wrong address, is slow, or does not answer.

Usage: names.py ADDRESS PORT CONTROL RIGHT WRONG

RIGHT and WRONG are IPv4 addresses. Words: "none", the right address; "lie", the wrong address; "down", no
answer; "slow", the right address after 400 ms.
"""

from __future__ import annotations

import socket
import struct
import sys
import threading

sys.dont_write_bytecode = True

import control

# The type of a record with an IPv4 address.
A = 1


class Names:
    """Answers queries for any name."""

    def __init__(self, address: str, port: int, right: str, wrong: str) -> None:
        self._sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._sock.bind((address, port))
        self._right, self._wrong = socket.inet_aton(right), socket.inet_aton(wrong)
        self._word = "none"

    def apply(self, word: str) -> None:
        """Begins the fault of a word; "none" ends it."""
        self._word = word

    def run(self) -> None:
        """Answers queries forever."""
        while True:
            question, client = self._sock.recvfrom(4096)
            word = self._word
            if word == "down":
                continue
            answer = self._answer(question, self._wrong if word == "lie" else self._right)
            if word == "slow":
                threading.Timer(0.4, self._sock.sendto, (answer, client)).start()
            else:
                self._sock.sendto(answer, client)

    @staticmethod
    def _answer(question: bytes, address: bytes) -> bytes:
        """The response to a query: the address if the query asks for type A, otherwise no record."""
        end = question.index(b"\0", 12) + 5
        kind = struct.unpack("!H", question[end - 4 : end - 2])[0]
        record = b"\xc0\x0c" + struct.pack("!HHIH", A, 1, 1, 4) + address if kind == A else b""
        return question[:2] + struct.pack("!HHHHH", 0x8580, 1, bool(record), 0, 0) + question[12:end] + record


def main() -> None:
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    address, port, file, right, wrong = sys.argv[1:]
    control.block()
    names = Names(address, int(port), right, wrong)
    threading.Thread(target=names.run, daemon=True).start()
    control.obey(file, names.apply)


if __name__ == "__main__":
    main()
