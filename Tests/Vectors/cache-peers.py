"""Replays a trace with libCacheSim's policies: cache-peers.py TRACE CAPACITY…

Prints a line for each capacity and policy: the policy, the capacity in bytes, the number of hits, and the
bytes that the hits delivered.

Each line of the trace is a request: a key and a size in bytes, or only a key, whose size is then 1. The
columns are separated by spaces or commas. If the first line has the column names of libCacheSim's own traces,
the columns `lbn` and `size` are the key and the size.
"""

import sys

import libcachesim

POLICIES = {"s3fifo": libcachesim.S3FIFO, "lru": libcachesim.LRU, "fifo": libcachesim.FIFO, "gdsf": libcachesim.GDSF}


def requests(path):
    """Yields the number and the size of each request's key. Equal keys have the same number, from 1."""
    numbers = {}
    columns = (0, 1)
    with open(path, encoding="utf-8") as file:
        for place, line in enumerate(file):
            fields = line.replace(",", " ").split()
            if place == 0 and "lbn" in fields:
                columns = (fields.index("lbn"), fields.index("size"))
                continue
            key = numbers.setdefault(fields[columns[0]], len(numbers) + 1)
            yield key, int(fields[columns[1]]) if len(fields) > 1 else 1


def main():
    """Replays the trace with each policy and each capacity, and prints the hits."""
    trace = list(requests(sys.argv[1]))
    request = libcachesim.Request()
    for capacity in map(int, sys.argv[2:]):
        for name, policy in POLICIES.items():
            cache = policy(capacity)
            hits = hit_bytes = 0
            for key, size in trace:
                request.obj_id = key
                request.obj_size = size
                if cache.get(request):
                    hits += 1
                    hit_bytes += size
            print(name, capacity, hits, hit_bytes)


main()
