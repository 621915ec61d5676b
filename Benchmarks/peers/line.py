"""What the peers written in Python share: their flags, and the line that they print."""

import argparse
import json
import resource
import time
from collections.abc import Callable


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--cacert", required=True)
    parser.add_argument("-n", type=int, default=10_000)
    parser.add_argument("-c", type=int, default=100)
    parser.add_argument("--length", type=int, required=True)
    return parser.parse_args()


def report(perform: Callable[[], tuple[list[float], int]]) -> None:
    before, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    latencies, failed = perform()
    after, ended = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    latencies.sort()
    count = len(latencies)
    print(json.dumps({
        "requests": count, "failed": failed, "wall_s": ended - began,
        "cpu_user_s": after.ru_utime - before.ru_utime, "cpu_sys_s": after.ru_stime - before.ru_stime,
        "max_rss_kib": after.ru_maxrss, "p50_us": int(latencies[count // 2] * 1e6),
        "p99_us": int(latencies[min(count - 1, int(0.99 * count))] * 1e6)}))
