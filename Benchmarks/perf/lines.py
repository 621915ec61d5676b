"""The lines of the budget: each measures, and gives results."""

import subprocess
import time
from collections.abc import Callable, Iterator
from statistics import median

from instructions import Counter
from origin import GOOD, HOLE, REFUSING, SILENT, Failure, Origin, program
from programs import CACHE, COMMAND, NETOPT, RAW, requests, run
from report import Result, figure, paired

Bounds = dict[str, float]
Line = Callable[[Origin, Bounds, int], Iterator[Result]]
LINES: dict[str, Line] = {}


def line(measure: Line) -> Line:
    LINES[measure.__name__.replace("_", "-")] = measure
    return measure


def pairs(count: int, ours: Callable[[], float], floor: Callable[[], float]) -> tuple[list[float], list[float]]:
    """Runs A B A B …, after one run of each that does not count."""
    ours(), floor()
    a, b = [], []
    for _ in range(count):
        b.append(floor())
        a.append(ours())
    return a, b


@line
def cpu(origin: Origin, bounds: Bounds, count: int) -> Iterator[Result]:
    """CPU a request, the whole client, and its memory."""
    for streams, executor, number in ((100, "loop", 20_000), (100, "pool", 20_000), (10, "loop", 20_000), (1, "loop", 5_000)):
        options = [
            "--url", origin.url("/small"), *origin.connect_to(), *origin.expect("/small"), "-n", str(number), "-c", str(streams)]
        memory: dict[str, list[float]] = {NETOPT: [], RAW: []}

        def once(client: str) -> float:
            done = requests(client, [*options, "--executor", executor])
            memory[client].append(done.line["max_rss_kib"] / 1024)
            return done.cpu_us

        name = f"cpu/{streams}/{executor}"
        yield paired(name, *pairs(count, lambda: once(NETOPT), lambda: once(RAW)), bounds[name])
        if name == "cpu/100/loop":
            floor = median(memory[RAW])
            more = [each - floor for each in memory[NETOPT]]
            yield figure("memory/100", more, bounds["memory/100"], "MiB beyond the floor", floor)


@line
def body(origin: Origin, bounds: Bounds, count: int) -> Iterator[Result]:
    """CPU for bodies."""
    for size, number, streams in (("100KB", 1000, 10), ("100MB", 3, 1)):
        options = [
            "--url", origin.url(f"/{size}"), *origin.connect_to(), *origin.expect(f"/{size}"), "-n", str(number),
            "-c", str(streams)]
        name = f"body/{size}"
        yield paired(
            name, *pairs(count, lambda: requests(NETOPT, options).cpu_us, lambda: requests(RAW, options).cpu_us),
            bounds[name])


@line
def connections(origin: Origin, bounds: Bounds, count: int) -> Iterator[Result]:
    """New connections: how many resume TLS, and what that saves."""
    number = 100
    closing, forgetful = (
        ["--url", origin.url("/small", name), *origin.connect_to(name), *origin.expect("/small"), "-n", str(number), "-c", "1"]
        for name in ("closing", "forgetful"))
    shares = []
    resumed, full = [], []
    for _ in range(count):
        origin.resumptions("closing")
        resumed.append(requests(NETOPT, closing).line["p50_us"] / 1e3)
        seen = origin.resumptions("closing")
        shares.append(sum(reused for _, reused in seen[1:]) / (len(seen) - 1))
        full.append(requests(NETOPT, forgetful).line["p50_us"] / 1e3)
    yield figure("connections/resumed", shares, bounds["connections/resumed"], "share", least=True)
    yield paired("connections/time", resumed, full, bounds["connections/time"], "ms, resumed by full")

    # The system's authorities and ours in one file, against ours alone.
    bundle = origin.path("bundle.pem")
    with open(bundle, "w", encoding="utf-8") as file:
        for part in ("/etc/ssl/certs/ca-certificates.crt", origin.authority):
            try:
                with open(part, encoding="utf-8") as source:
                    file.write(source.read())
            except OSError as error:
                raise Failure(f"{part} cannot be read; install ca-certificates") from error
    large = [bundle if option == origin.authority else option for option in forgetful]
    more = [requests(NETOPT, large).cpu_us - requests(NETOPT, forgetful).cpu_us for _ in range(count)]
    yield figure("connections/system-ca", [each / 1e3 for each in more], bounds["connections/system-ca"], "ms CPU more")


@line
def first_request(origin: Origin, bounds: Bounds, count: int) -> Iterator[Result]:
    """The first request of a new client with a list of eight addresses, against libcurl with the best one."""
    target = ["--url", origin.url("/small"), *origin.expect("/small"), "-n", "20", "-c", "1", "--cold", "yes"]
    listed = [*target, *origin.write_list(GOOD)]
    known = [*target, *origin.connect_to()]
    ours, floor = pairs(
        count, lambda: requests(NETOPT, listed).line["p50_us"] / 1e3, lambda: requests(RAW, known).line["p50_us"] / 1e3)
    over = [a - 1.15 * b for a, b in zip(ours, floor)]
    result = figure("first-request", over, bounds["first-request"], "ms beyond 1.15 x the floor", median(floor))
    result.netopt = median(ours)
    yield result


@line
def dead_first(origin: Origin, bounds: Bounds, count: int) -> Iterator[Result]:
    """What a dead first address adds to the first request of a new client without history."""
    target = [
        "--url", origin.url("/small"), *origin.expect("/small"), "-n", "5", "-c", "1", "--cold", "yes", "--probes", "no"]

    def time_with(addresses: list[str]) -> float:
        done = run([NETOPT, "requests", *target, *origin.write_list(addresses)], {"NETOPT_REGION": "here"})
        return done["p50_us"] / 1e3

    for name, address in (("refused", REFUSING), ("black-hole", HOLE), ("silent-tls", SILENT)):
        ours, floor = pairs(max(1, count // 2), lambda: time_with([address, GOOD[0]]), lambda: time_with(GOOD[:2]))
        added = [a - b for a, b in zip(ours, floor)]
        result = figure(f"dead-first/{name}", added, bounds[f"dead-first/{name}"], "ms more", median(floor))
        result.netopt = median(ours)
        yield result


@line
def routing(origin: Origin, bounds: Bounds, count: int) -> Iterator[Result]:
    """Plans and lists."""
    plans = [run([NETOPT, "planning"]) for _ in range(count)]
    yield figure("planning/unchanged", [each["unchanged_ns"] / 1e3 for each in plans], bounds["planning/unchanged"], "us")
    yield figure("planning/changed", [each["changed_ns"] / 1e3 for each in plans], bounds["planning/changed"], "us")
    lists = [run([NETOPT, "list"])["median_ms"] for _ in range(count)]
    yield figure("list", lists, bounds["list"], "ms")


@line
def cached(origin: Origin, bounds: Bounds, count: int) -> Iterator[Result]:
    """Hits in the cache: at the memory tier, through the whole client, at the disk tier."""
    stores = [run([CACHE, "hits"]) for _ in range(count)]
    yield figure("cached/memory", [each["memory_hit_ns"] / 1e3 for each in stores], bounds["cached/memory"], "us CPU")
    through = [run([NETOPT, "cached"])["hit_cpu_us"] for _ in range(count)]
    yield figure("cached/client", through, bounds["cached/client"], "us CPU for 10 KB")
    yield figure("cached/disk", [each["disk_hit_us"] for each in stores], bounds["cached/disk"], "us for 10 KB")


@line
def cache_memory(origin: Origin, bounds: Bounds, count: int) -> Iterator[Result]:
    """The memory that the memory tier takes: what is in use of it, and with what glibc keeps beside it."""
    loads = ("empty", "small", "middle", "mixed", "shrinking", "alternating", "variants")
    used = [run([CACHE, "memory", load, threads])["allocated"] for load in loads for threads in ("1", "4")]
    yield figure("cache-memory/in-use", [max(used)], bounds["cache-memory/in-use"], "of what is allowed, at most; one and four threads")
    for load in loads:
        # The most, since it is a limit.
        most = max(run([CACHE, "memory", load])["resident"] for _ in range(max(1, count // 2)))
        yield figure(f"cache-memory/{load}", [most], bounds["cache-memory"], "of what is allowed, at most")


@line
def hosts(origin: Origin, bounds: Bounds, count: int) -> Iterator[Result]:
    """CPU a request with a long list, against a short one, with the same requests."""
    target = [
        "hosts", "--cacert", origin.authority, "--port", str(origin.ports["everywhere"]), *origin.expect("/small"), "-n", "20000"]

    def once(*options: str) -> float:
        done = run([NETOPT, *target, *options])
        return (done["cpu_user_s"] + done["cpu_sys_s"]) / done["requests"] * 1e6

    for name, long, short in (
        ("hosts/1000x10", ["--hosts", "1000", "--addresses", "10"], ["--hosts", "1000", "--addresses", "1"]),
        ("hosts/10-of-1000", ["--hosts", "1000", "--used", "10"], ["--hosts", "10", "--used", "10"]),
    ):
        yield paired(
            name, *pairs(count, lambda: once(*long), lambda: once(*short)), bounds[name], "us CPU, long by short list")


@line
def observing(origin: Origin, bounds: Bounds, count: int) -> Iterator[Result]:
    """Instructions a request for what looks at the calls, beyond those of a client with a reader of events and metrics."""
    counter = Counter(origin)
    target = ["requests", "--url", origin.url("/small"), *origin.connect_to(), *origin.expect("/small"), "-c", "100"]

    def once(*options: str) -> float:
        return counter.each(lambda number: [NETOPT, *target, *options, "-n", str(number)], 1000, 3000).instructions

    # A trace that is not exported is a field that changes, and its own costs.
    for name, options, base in (
        ("tags", ["--tags", "40"], []),
        ("records", ["--observe", "records"], []),
        ("unsampled", ["--observe", "unsampled"], ["--observe", "field"]),
    ):
        ours, floor = pairs(max(1, count // 3), lambda: once(*options), lambda: once(*base))
        more = [a - b for a, b in zip(ours, floor)]
        yield figure(f"observing/{name}", more, bounds[f"observing/{name}"], "instructions more", median(floor))


@line
def waiting(origin: Origin, bounds: Bounds, count: int) -> Iterator[Result]:
    """Memory of 10,000 requests at once, and whether it is given back."""
    number = 10_000
    target = ["--url", origin.url("/small"), *origin.connect_to(), "-n", str(number), "--server-pid", str(origin.pid)]
    more, kept = [], []
    floors = []
    for _ in range(max(1, count // 2)):
        floor = run([RAW, *target, "-c", str(number)])["waiting_kib"] / number
        rounds = run([NETOPT, "waiting", *target, "--rounds", "4"])
        floors.append(floor)
        more.append((rounds["waiting_kib"][0] - rounds["before_kib"]) / number - floor)
        kept.append((rounds["after_kib"][-1] - rounds["after_kib"][0]) / 1024)
    yield figure("waiting", more, bounds["waiting"], "KiB each beyond the floor", median(floors))
    yield figure("waiting/recovered", kept, bounds["waiting/recovered"], "MiB more after 4 rounds than after 1")


@line
def start(origin: Origin, bounds: Bounds, count: int) -> Iterator[Result]:
    """The command."""

    def time_of(command: list[str]) -> float:
        began = time.perf_counter()
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return (time.perf_counter() - began) * 1e3

    times = 20
    yield figure("start/version", [time_of([COMMAND, "--version"]) for _ in range(times)], bounds["start/version"], "ms")
    url = origin.url("/small")
    listed = origin.write_list(GOOD[:1])
    listed[listed.index("--list")] = "--iplist"
    get = [COMMAND, "get", url, *listed, "--allow-private"]
    plain = [program("curl"), "--silent", url, *origin.connect_to()]
    ours, floor = pairs(times, lambda: time_of(get), lambda: time_of(plain))
    result = figure("start/get", [a - b for a, b in zip(ours, floor)], bounds["start/get"], "ms more than curl", median(floor))
    result.netopt = median(ours)
    yield result
