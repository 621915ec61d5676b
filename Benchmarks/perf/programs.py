"""Running the programs that are measured."""

import json
import os
import subprocess
from dataclasses import dataclass

from origin import CLIENT_CORE, Failure, program

BENCHMARKS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(BENCHMARKS, ".build", "release")
NETOPT = os.path.join(BUILD, "netopt-benchmark")
RAW = os.path.join(BUILD, "raw-libcurl")
URLSESSION = os.path.join(BUILD, "urlsession-requests")
CACHE = os.path.join(os.path.dirname(BENCHMARKS), ".build", "release", "cache-benchmark")
COMMAND = os.path.join(os.path.dirname(BENCHMARKS), ".build", "release", "netopt")


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
    line = json.loads(done.stdout.strip().splitlines()[-1])
    if line.get("failed", 0) > 0:
        raise Failure(f"{' '.join(command[:2])}: {line['failed']} requests failed")
    return line


def requests(client: str, options: list[str], environment: dict[str, str] | None = None) -> Run:
    """Runs a program that performs requests."""
    return Run(run([client, *(["requests"] if client == NETOPT else []), *options], environment))
