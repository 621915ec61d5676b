"""Replays a trace with libCacheSim's policies: cache-peers.py TRACE CAPACITY…

Prints a line for each policy and capacity: policy, capacity, hits, bytes of hits. A line of the trace has a key, or a key and
a size; comma-separated traces with names above their columns have lbn and size, as libCacheSim's own.
"""

import sys

import libcachesim

POLICIES = {"s3fifo": libcachesim.S3FIFO, "lru": libcachesim.LRU, "fifo": libcachesim.FIFO, "gdsf": libcachesim.GDSF}


def requests(path):
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
