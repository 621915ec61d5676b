"""Instructions and system calls of whole programs, counted by qemu-user: they hardly depend on the machine."""

import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from typing import NamedTuple

from origin import CLIENT_CORE, Failure, Origin, program
from programs import BENCHMARKS, NETOPT, RAW, subcommand, verify

SOURCE = os.path.join(BENCHMARKS, "Sources", "instruction-count", "plugin.c")
# What is counted: netopt's figures and the floor's, which tell a change of netopt's from one of libcurl.
CASES = [(f"{streams}/{executor}", client, streams, executor)
         for streams, executor in ((100, "loop"), (100, "pool"), (10, "loop"), (1, "loop"))
         for client in (NETOPT, RAW) if client == NETOPT or executor == "loop"]


class Counts(NamedTuple):
    instructions: float
    system_calls: float


class Counter:
    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.plugin = os.path.join(tempfile.mkdtemp(dir=origin.directory), "count.so")
        subprocess.run([program("cc"), "-O2", "-shared", "-fPIC", "-o", self.plugin, SOURCE], check=True)

    def run(self, command: list[str]) -> Counts:
        done = subprocess.run(
            [program("taskset"), "-c", CLIENT_CORE, program("qemu-x86_64"), "-plugin", self.plugin, *command],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            raise Failure(f"qemu with {command[0]} ended with {done.returncode}: {done.stderr.strip()[-400:]}")
        verify(command, done.stdout, done.stderr)
        line = json.loads(done.stderr.strip().splitlines()[-1])
        return Counts(line["instructions"], line["system_calls"])

    def each(self, command: Callable[[int], list[str]], short: int, long: int) -> Counts:
        """What one of many costs, between a short and a long run, so that start and end cancel out."""
        a, b = self.run(command(short)), self.run(command(long))
        return Counts(
            (b.instructions - a.instructions) / (long - short), (b.system_calls - a.system_calls) / (long - short))

    def request(self, client: str, streams: int, executor: str) -> Counts:
        options = ["--url", self.origin.url("/small"), *self.origin.connect_to(), *self.origin.expect("/small"),
                   "-c", str(streams), "--executor", executor]
        return self.each(lambda number: [client, *subcommand(client), *options, "-n", str(number)], 1000, 3000)

    def per_request(self, client: str, streams: int, executor: str) -> tuple[float, float]:
        """The least of three: what comes on top, a turn more or less, is the machine's."""
        counts = [self.request(client, streams, executor) for _ in range(3)]
        return min(count.instructions for count in counts), min(count.system_calls for count in counts)

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
