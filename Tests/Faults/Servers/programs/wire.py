"""A network path to the servers of the fault matrix that can lose packets. Needs its own network namespace.

Usage: wire.py CONTROL COUNT

A TUN device carries the packets of 10.9.0.0/16. A client at 10.9.0.1 reaches the server at 10.9.N.1 through
10.9.N.2. The wire rewrites both addresses of a packet so that their sum, and with it every checksum, stays
the same. Words: "none"; "loss-P", P of 100 packets are lost; "down-N", no packet passes to or from server N;
"forget", no packet passes of a connection that was idle for 300 ms, as behind a load balancer that has
forgotten the connection.
"""

from __future__ import annotations

import fcntl
import os
import random
import struct
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True

import control

# The ioctl that creates a TUN device, and its flags IFF_TUN and IFF_NO_PI: packets have no extra header.
TUNSETIFF = 0x400454CA
TUN_WITHOUT_HEADER = 0x1001
# The time in seconds after which "forget" drops the packets of an idle connection.
IDLE = 0.3


class Wire:
    """Reads packets from the TUN device, and writes those that are not lost back to it."""

    def __init__(self, count: int) -> None:
        self._device = os.open("/dev/net/tun", os.O_RDWR)
        fcntl.ioctl(self._device, TUNSETIFF, struct.pack("16sH22x", b"wire0", TUN_WITHOUT_HEADER))
        ip("link set wire0 up")
        ip("address add 10.9.0.1/32 dev wire0")
        for number in range(1, count + 1):
            ip(f"address add 10.9.{number}.1/32 dev wire0")
        ip("route add 10.9.0.0/16 dev wire0 src 10.9.0.1")
        self._word = "none"
        # The time of the last packet of each connection, in seconds of the monotonic clock; 0 for a forgotten
        # connection. The key has the number of the server and the client's port.
        self._seen: dict[tuple[int, bytes], float] = {}

    def apply(self, word: str) -> None:
        """Begins the fault of a word; "none" ends it."""
        self._word = word

    def run(self) -> None:
        """Passes packets on, forever."""
        draw = random.Random(1)
        while True:
            packet = bytearray(os.read(self._device, 65536))
            # Passes on only TCP (protocol 6) over IPv4 (RFC 791). The packets come from the client and go to
            # 10.9.N.2, or they come from the server, 10.9.N.1, and go to 10.9.0.2.
            if packet[0] >> 4 != 4 or packet[9] != 6:
                continue
            to_server = packet[12:16] == b"\x0a\x09\x00\x01"
            number = packet[18] if to_server else packet[14]
            if self._is_lost(packet, number, to_server, draw):
                continue
            if to_server:
                packet[12:20] = bytes((10, 9, 0, 2, 10, 9, number, 1))
            else:
                packet[12:20] = bytes((10, 9, number, 2, 10, 9, 0, 1))
            os.write(self._device, packet)

    def _is_lost(self, packet: bytearray, number: int, to_server: bool, draw: random.Random) -> bool:
        """Whether the fault drops a packet to or from server `number`. `draw` is the source of chance."""
        word = self._word
        if word.startswith("loss-"):
            return draw.random() * 100 < int(word[5:])
        if word.startswith("down-"):
            return number == int(word[5:])
        start = (packet[0] & 15) * 4
        port = bytes(packet[start : start + 2] if to_server else packet[start + 2 : start + 4])
        flow, now = (number, port), time.monotonic()
        seen = self._seen.get(flow, now)
        # A SYN begins a new connection, even on a known port (RFC 9293).
        if packet[start + 13] & 2:
            seen = now
        elif word == "forget" and now - seen > IDLE:
            self._seen[flow] = 0.0
            return True
        self._seen[flow] = now
        return False


def ip(arguments: str) -> None:
    """Runs ip(8)."""
    subprocess.run(["ip", *arguments.split()], check=True)


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    control.block()
    wire = Wire(int(sys.argv[2]))
    threading.Thread(target=wire.run, daemon=True).start()
    control.obey(sys.argv[1], wire.apply)


if __name__ == "__main__":
    main()
