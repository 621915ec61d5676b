"""Other clients, with the same requests. They have no bounds: they show where netopt stands."""

import os
import resource
import subprocess
import time

from origin import CLIENT_CORE, GOOD, SMALL, Failure, Origin, program
from programs import BENCHMARKS, NETOPT, URLSESSION, requests, run

PYTHON = os.path.join(BENCHMARKS, ".build", "peers", "bin", "python")


def h2load(origin: Origin, number: int, streams: int) -> float:
    """CPU a request of nghttp2's own load generator: the limit."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [program("taskset"), "-c", CLIENT_CORE, program("h2load"), "-n", str(number), "-c", "1", "-m", str(streams),
         f"--connect-to={GOOD[0]}:{origin.ports['kept']}", origin.url("/small")],
        check=True, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if f" {number} succeeded," not in done.stdout or f"{number} 2xx," not in done.stdout:
        raise Failure(f"not all requests of h2load succeeded: {done.stdout.strip()[-400:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / number * 1e6


def peers(origin: Origin, count: int) -> list[str]:
    """Lines of text: CPU a request of each peer, and the ratio of netopt to it."""
    lines = []
    # No peer's URL can be told an address but pycurl's; so all of them go to the address itself, whose certificate has it.
    url = origin.url("/small", host=GOOD[0])
    for streams, number in ((100, 10_000), (1, 2_000)):
        options = ["-n", str(number), "-c", str(streams)]
        # Without questions, which the others do not ask either.
        named = ["--url", origin.url("/small"), *origin.connect_to(), *options]
        addressed = ["--url", url, "--cacert", origin.authority, *options, "--length", str(SMALL)]
        script = lambda name: [PYTHON, os.path.join(BENCHMARKS, "peers", name), *addressed]
        measures = {
            "h2load": lambda: h2load(origin, number, streams),
            "pycurl": lambda: cpu(run(script("pycurl-requests"))),
            "httpx": lambda: cpu(run(script("httpx-requests"))),
            "URLSession": lambda: cpu(run(
                [URLSESSION, *addressed], {"URLSessionCertificateAuthorityInfoFile": origin.authority})),
        }
        for name, measure in measures.items():
            try:
                ratios, theirs = [], []
                for _ in range(count):
                    theirs.append(measure())
                    ratios.append(requests(NETOPT, named).cpu_us / theirs[-1])
                ratios.sort()
                theirs.sort()
                lines.append(f"{name + f'/{streams}':<26} {theirs[count // 2]:>11.2f} us CPU   netopt is {ratios[count // 2]:.3f} x that")
            except (Failure, OSError, subprocess.SubprocessError) as error:
                lines.append(f"{name + f'/{streams}':<26} skipped: {str(error)[:200]}")
    return lines


def cpu(line: dict) -> float:
    return (line["cpu_user_s"] + line["cpu_sys_s"]) / line["requests"] * 1e6
