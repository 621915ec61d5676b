"""Running the programs that are measured."""

import json
import os
import subprocess
from dataclasses import dataclass

from origin import CLIENT_CORE, Failure, program

BENCHMARKS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


BENCHMARK = "netopt-benchmark"


@dataclass(frozen=True)
class Tree:
    """A checkout and the programs that were built in it."""

    root: str

    def of_benchmarks(self, name: str) -> str:
        return os.path.join(self.root, "Benchmarks", ".build", "release", name)

    def of_package(self, name: str) -> str:
        return os.path.join(self.root, ".build", "release", name)

    @property
    def benchmark(self) -> str:
        return self.of_package(BENCHMARK) if self.has_benchmark else self.of_benchmarks(BENCHMARK)

    @property
    def has_benchmark(self) -> bool:
        """Whether the load generator is a target of netopt's package: of commits before that it is one of the package Benchmarks."""
        with open(os.path.join(self.root, "Package.swift"), encoding="utf-8") as file:
            return f'"{BENCHMARK}"' in file.read()

    @property
    def cache(self) -> str:
        return self.of_package("cache-benchmark")

    @property
    def command(self) -> str:
        return self.of_package("netopt")


HERE = Tree(os.path.dirname(BENCHMARKS))
NETOPT, CACHE, COMMAND = HERE.benchmark, HERE.cache, HERE.command
RAW = HERE.of_benchmarks("raw-libcurl")
URLSESSION = HERE.of_benchmarks("urlsession-requests")


def loads_swift(path: str) -> bool:
    """Whether a program loads Swift's standard library when it starts, instead of containing it."""
    with open(path, "rb") as file:
        return b"libswiftCore.so" in file.read()


@dataclass
class Run:
    """What a program printed of itself."""

    line: dict

    @property
    def cpu_us(self) -> float:
        """Microseconds of CPU a request."""
        return (self.line["cpu_user_s"] + self.line["cpu_sys_s"]) / self.line["requests"] * 1e6


def run(command: list[str], environment: dict[str, str] | None = None) -> dict:
    """Runs a program on the client's core; gives the JSON that it printed."""
    done = subprocess.run(
        [program("taskset"), "-c", CLIENT_CORE, *command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        env={**os.environ, **(environment or {})}, timeout=600)
    if done.returncode != 0:
        raise Failure(f"{' '.join(command[:2])} ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    return verify(command, done.stdout, done.stderr)


def verify(command: list[str], output: str, complaints: str) -> dict:
    """The JSON that a program printed, which has to say that every request had its own answer."""
    lines = output.strip().splitlines()
    if not lines or not lines[-1].startswith("{"):
        return {}
    line = json.loads(lines[-1])
    name = " ".join(command[:2])
    if line.get("wrong", 0) > 0:
        raise Failure(f"{name}: {line['wrong']} answers are not those to their requests: {complaints.strip()[-400:]}")
    if line.get("failed", 0) > 0:
        raise Failure(f"{name}: {line['failed']} requests failed")
    return line


def requests(client: str, options: list[str], environment: dict[str, str] | None = None) -> Run:
    """Runs a program that performs requests."""
    return Run(run([client, *subcommand(client), *options], environment))


def subcommand(client: str) -> list[str]:
    """What `netopt-benchmark` has to be told and the others need not be."""
    return ["requests"] if os.path.basename(client) == os.path.basename(NETOPT) else []
