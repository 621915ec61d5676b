"""Instructions and system calls of whole programs, counted by qemu-user: they hardly depend on the machine."""

import json
import os
import subprocess
import tempfile

from origin import CLIENT_CORE, Failure, Origin, program
from programs import BENCHMARKS, NETOPT, RAW

SOURCE = os.path.join(BENCHMARKS, "Sources", "instruction-count", "plugin.c")
# What is counted: netopt's figures and the floor's, which tell a change of netopt's from one of libcurl.
CASES = [(f"{streams}/{executor}", client, streams, executor)
         for streams, executor in ((100, "loop"), (100, "pool"), (10, "loop"), (1, "loop"))
         for client in (NETOPT, RAW) if client == NETOPT or executor == "loop"]


class Counter:
    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.plugin = os.path.join(tempfile.mkdtemp(dir=origin.directory), "count.so")
        subprocess.run([program("cc"), "-O2", "-shared", "-fPIC", "-o", self.plugin, SOURCE], check=True)

    def run(self, client: str, number: int, streams: int, executor: str) -> dict:
        command = [
            program("taskset"), "-c", CLIENT_CORE, program("qemu-x86_64"), "-plugin", self.plugin, client,
            *(["requests"] if client == NETOPT else []), "--url", self.origin.url("/small"), *self.origin.connect_to(),
            "-n", str(number), "-c", str(streams), "--executor", executor]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            raise Failure(f"qemu ended with {done.returncode}: {done.stderr.strip()[-400:]}")
        return json.loads(done.stderr.strip().splitlines()[-1])

    def per_request(self, client: str, streams: int, executor: str) -> tuple[float, float]:
        """Between a short and a long run, so that start and end cancel out. The least of three: what comes on top, a
        turn more or less, is the machine's."""
        short, long = 1000, 3000
        counts = []
        for _ in range(3):
            a, b = self.run(client, short, streams, executor), self.run(client, long, streams, executor)
            counts.append(tuple((b[key] - a[key]) / (long - short) for key in ("instructions", "system_calls")))
        return min(count[0] for count in counts), min(count[1] for count in counts)

    def all(self) -> dict[str, float]:
        """Figures by name: instructions of netopt as a multiple of the floor's, so that another libcurl fails nobody."""
        figures: dict[str, float] = {}
        floors: dict[int, float] = {}
        for name, client, streams, executor in sorted(CASES, key=lambda case: case[1] == NETOPT):
            instructions, calls = self.per_request(client, streams, executor)
            if client == RAW:
                floors[streams] = instructions
                continue
            figures[f"instructions/{name}"] = round(instructions / floors[streams], 4)
            figures[f"system-calls/{name}"] = round(calls, 2)
        return figures
