"""Measures netopt against plain libcurl, in pairs, on origins that it starts on this machine.

Usage: python3 Benchmarks/perf run [--pairs N] [--only LINE,…] [--json FILE] [--peers yes|no]
       python3 Benchmarks/perf against COMMIT [--pairs N] [--only LINE,…] [--bound RATIO] [--json FILE]
       python3 Benchmarks/perf check
       python3 Benchmarks/perf record
       python3 Benchmarks/perf soak [-n REQUESTS]

run     prints a table with every line of the budget and its bound.
against compares with another commit, in pairs: it fails when the 95 % interval of a ratio lies above the bound.
check   fails when netopt executes 5 % more instructions a request than recorded (a quarter more system calls), or costs more CPU.
record  writes down the instructions of today.
soak    performs a million requests and looks whether memory, descriptors or threads grow.

Exit status: 0 within bounds, 1 beyond, 2 cannot be measured here.
"""

import argparse
import json
import os
import platform
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from against import against  # noqa: E402
from instructions import Counter  # noqa: E402
from lines import LINES, pairs  # noqa: E402
from origin import Failure, Origin  # noqa: E402
from peers import peers  # noqa: E402
from programs import BENCHMARKS, CACHE, COMMAND, NETOPT, RAW, loads_swift, requests, run  # noqa: E402
from ratios import LEAST_PAIRS  # noqa: E402
from report import changes, paired, table  # noqa: E402

THRESHOLDS = os.path.join(BENCHMARKS, "thresholds.json")
# By how much a recorded figure may get worse. How often a thread of the default pool has to be woken depends on how the
# threads are scheduled.
TOLERANCES = {"instructions": 0.05, "system-calls": 0.25}


def thresholds() -> dict:
    with open(THRESHOLDS, encoding="utf-8") as file:
        return json.load(file)


def measure(arguments: argparse.Namespace) -> int:
    bounds = {name: bound["most" if "most" in bound else "least"] for name, bound in thresholds()["bounds"].items()}
    names = arguments.only.split(",") if arguments.only else list(LINES)
    for name in names:
        if name not in LINES:
            raise Failure(f"there is no line {name}; there are: {', '.join(LINES)}")
    results = []
    origin = Origin()
    try:
        for name in names:
            print(f"perf: {name}: {LINES[name].__doc__.splitlines()[0]}", file=sys.stderr, flush=True)
            for result in LINES[name](origin, bounds, arguments.pairs):
                results.append(result)
                print(table([result]).splitlines()[1], file=sys.stderr, flush=True)
        others = peers(origin, max(1, arguments.pairs // 2)) if arguments.peers == "yes" else []
    finally:
        origin.end()
    print(table(results))
    if others:
        print("\n" + "\n".join(others))
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(
                {"schema": 1, "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "machine": platform.machine(),
                 "cores": os.cpu_count(), "pairs": arguments.pairs, "lines": [result.to_json() for result in results],
                 "peers": others}, file, indent=2)
            file.write("\n")
    return 0 if all(result.is_within for result in results) else 1


def check(_: argparse.Namespace) -> int:
    given = thresholds()
    origin = Origin()
    try:
        measured = Counter(origin).all()
        options = ["--url", origin.url("/small"), *origin.connect_to(), *origin.expect("/small"), "-n", "20000", "-c", "100"]
        result = paired(
            "cpu/100/loop", *pairs(9, lambda: requests(NETOPT, options).cpu_us, lambda: requests(RAW, options).cpu_us),
            given["check"]["cpu/100/loop"])
    finally:
        origin.end()
    failed = False
    for name, change, is_worse in changes(given["recorded"], measured, TOLERANCES):
        verdict = "WORSE" if is_worse else "better: record it with make perf-record" if change < -0.05 and name.startswith("instructions") else "ok"
        failed = failed or is_worse
        print(f"{name:<26} {given['recorded'][name]:>9.4f} -> {measured[name]:>9.4f}  {change:+7.1%}  {verdict}")
    print(table([result]))
    return 1 if failed or not result.is_within else 0


def record(_: argparse.Namespace) -> int:
    given = thresholds()
    origin = Origin()
    try:
        given["recorded"] = Counter(origin).all()
    finally:
        origin.end()
    with open(THRESHOLDS, "w", encoding="utf-8") as file:
        json.dump(given, file, indent=2)
        file.write("\n")
    print(json.dumps(given["recorded"], indent=2))
    return 0


def soak(arguments: argparse.Namespace) -> int:
    origin = Origin()
    try:
        line = run([NETOPT, "soak", "--url", origin.url("/small"), *origin.connect_to(), *origin.expect("/small"), "-n", str(arguments.n)])
    finally:
        origin.end()
    print(json.dumps(line))
    return 0 if line["flat"] else 1


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="perf", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    run_parser = commands.add_parser("run")
    run_parser.add_argument("--pairs", type=int, default=7)
    run_parser.add_argument("--only")
    run_parser.add_argument("--json")
    run_parser.add_argument("--peers", choices=["yes", "no"], default="no")
    run_parser.set_defaults(run=measure)
    against_parser = commands.add_parser("against")
    against_parser.add_argument("reference", metavar="COMMIT")
    against_parser.add_argument("--pairs", type=int, default=LEAST_PAIRS)
    against_parser.add_argument("--only")
    against_parser.add_argument("--bound", type=float, default=1.03)
    against_parser.add_argument("--json")
    against_parser.set_defaults(run=against)
    commands.add_parser("check").set_defaults(run=check)
    commands.add_parser("record").set_defaults(run=record)
    soak_parser = commands.add_parser("soak")
    soak_parser.add_argument("-n", type=int, default=1_000_000)
    soak_parser.set_defaults(run=soak)
    arguments = parser.parse_args()
    # What `kill` sends ends this process like an error: the servers are ended on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        if (os.cpu_count() or 1) < 2:
            raise Failure("one core for the origin and one for the client are needed")
        if arguments.run is against and not 1 <= arguments.bound <= 10:
            raise Failure("--bound is a ratio from 1 to 10")
        for path in (NETOPT, RAW, CACHE, COMMAND):
            if not os.access(path, os.X_OK):
                raise Failure(f"{path} is not built; use make perf")
            if loads_swift(path):
                raise Failure(
                    f"{path} loads Swift's standard library, which costs a tenth of the CPU; the programs of other "
                    "commits contain it, so build this one with make perf")
        return arguments.run(arguments)
    except Failure as failure:
        print(f"perf: {failure}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
