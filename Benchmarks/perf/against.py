"""Compares this tree with another commit, line by line."""

import argparse
import json
import os
import platform
import sys
import time
from statistics import fmean

from comparisons import LINES, Measure
from instructions import Counter
from origin import Failure, Origin
from other import Other
from programs import HERE, Tree
from ratios import LEAST_PAIRS, Comparison, compared, comparison_table, counted, turns

# Instructions a request differ by less than 1 % from run to run; the least of so many differs less.
COUNTS = 3


def compare(measure: Measure, theirs: Tree, pairs: int, bound: float) -> Comparison:
    """Takes a measure of this tree and of the other, in turns, after one of each that does not count."""
    for tree in (HERE, theirs):
        measure.take(tree)
    taken: dict[bool, list[float]] = {True: [], False: []}
    for pair in range(COUNTS if measure.is_count else pairs):
        parts: dict[bool, list[float]] = {True: [], False: []}
        for is_ours in turns(pair, measure.parts):
            parts[is_ours].append(measure.take(HERE if is_ours else theirs))
        for is_ours, values in parts.items():
            taken[is_ours].append(fmean(values))
    judge = counted if measure.is_count else compared
    return judge(measure.name, measure.unit, taken[True], taken[False], bound)


def against(arguments: argparse.Namespace) -> int:
    if arguments.pairs < LEAST_PAIRS:
        raise Failure(f"--pairs is {LEAST_PAIRS} at least: with fewer the interval says little")
    names = arguments.only.split(",") if arguments.only else list(LINES)
    for name in names:
        if name not in LINES:
            raise Failure(f"no line {name} compares two commits; there are: {', '.join(LINES)}")
    other = Other(arguments.reference)
    notes = other.build({program for name in names for program in LINES[name].programs})
    comparisons: list[Comparison] = []
    missing: list[str] = []
    origin = Origin()
    try:
        counter = Counter(origin)
        for name in names:
            print(f"perf: {name}: {LINES[name].measures.__doc__.splitlines()[0]}", file=sys.stderr, flush=True)
            for measure in LINES[name].measures(origin, counter):
                try:
                    comparison = compare(measure, other.tree, arguments.pairs, arguments.bound)
                except Failure as failure:
                    # The other lines are worth their time all the same.
                    missing.append(f"{measure.name}: {failure}")
                    print(f"perf: {missing[-1]}", file=sys.stderr, flush=True)
                    continue
                comparisons.append(comparison)
                print(comparison_table([comparison]).splitlines()[1], file=sys.stderr, flush=True)
    finally:
        origin.end()
    print(f"this tree against {other.commit[:12]}, {arguments.pairs} pairs, 95 % intervals of the ratio")
    print(comparison_table(comparisons))
    for note in [*notes, *(f"not compared: {each}" for each in missing)]:
        print(note)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(
                {"schema": 1, "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "machine": platform.machine(),
                 "cores": os.cpu_count(), "against": other.commit, "pairs": arguments.pairs, "bound": arguments.bound,
                 "lines": [each.to_json() for each in comparisons], "notes": notes, "not_compared": missing}, file, indent=2)
            file.write("\n")
    if any(each.is_beyond for each in comparisons):
        return 1
    return 2 if missing else 0
