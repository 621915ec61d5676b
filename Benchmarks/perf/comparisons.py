"""What is compared of two trees: each line gives measures, which are taken of either tree."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from instructions import Counter
from origin import GOOD, HOLE, REFUSING, SILENT, Origin
from programs import Tree, requests, run

BENCHMARK, CACHE, COMMAND = "netopt-benchmark", "cache-benchmark", "netopt"


@dataclass(frozen=True)
class Measure:
    name: str
    unit: str
    take: Callable[[Tree], float]
    # A count, of which the least of a few is compared. Otherwise what is taken varies, and pairs are.
    is_count: bool = False
    # How many runs of each tree, in turns, make up one side of a pair. What else the machine does lasts for seconds: in pairs of
    # eight runs of 2,500 requests the interval is half as wide as in pairs of two runs of 10,000.
    parts: int = 1


@dataclass(frozen=True)
class Line:
    # The programs that it runs, of each tree.
    programs: tuple[str, ...]
    measures: Callable[[Origin, Counter], Iterator[Measure]]


LINES: dict[str, Line] = {}


def line(*programs: str) -> Callable:
    def add(measures: Callable[[Origin, Counter], Iterator[Measure]]) -> Callable:
        LINES[measures.__name__.replace("_", "-")] = Line(programs, measures)
        return measures

    return add


def cpu_of(options: list[str]) -> Callable[[Tree], float]:
    return lambda tree: requests(tree.benchmark, options).cpu_us


def time_of(options: list[str], environment: dict[str, str] | None = None) -> Callable[[Tree], float]:
    return lambda tree: requests(tree.benchmark, options, environment).line["p50_us"] / 1e3


def of_small(origin: Origin, variant: str = "kept") -> list[str]:
    return ["--url", origin.url("/small", variant), *origin.expect("/small")]


@line(BENCHMARK)
def cpu(origin: Origin, _: Counter) -> Iterator[Measure]:
    """CPU a request, the whole client."""
    target = [*of_small(origin), *origin.connect_to()]
    for streams, number in ((100, 2500), (10, 2500), (1, 600)):
        for executor in ("loop", "pool"):
            options = [*target, "-n", str(number), "-c", str(streams), "--executor", executor]
            yield Measure(f"cpu/{streams}/{executor}", "us CPU", cpu_of(options), parts=16)


@line(BENCHMARK)
def body(origin: Origin, _: Counter) -> Iterator[Measure]:
    """CPU for bodies."""
    for size, number, streams in (("100KB", 300, 10), ("100MB", 1, 1)):
        options = ["--url", origin.url(f"/{size}"), *origin.connect_to(), *origin.expect(f"/{size}"), "-n", str(number),
                   "-c", str(streams)]
        yield Measure(f"body/{size}", "us CPU", cpu_of(options), parts=8)


@line(BENCHMARK)
def connections(origin: Origin, _: Counter) -> Iterator[Measure]:
    """CPU for a new connection and its request, with TLS resumed and in full."""
    for name, variant in (("resumed", "closing"), ("full", "forgetful")):
        options = [*of_small(origin, variant), *origin.connect_to(variant), "-n", "50", "-c", "1"]
        yield Measure(f"connections/{name}", "us CPU", cpu_of(options), parts=8)


@line(BENCHMARK)
def first_request(origin: Origin, _: Counter) -> Iterator[Measure]:
    """Time of the first request of a new client with a list of eight addresses."""
    options = [*of_small(origin), *origin.write_list(GOOD), "-n", "10", "-c", "1", "--cold", "yes"]
    yield Measure("first-request", "ms", time_of(options), parts=4)


@line(BENCHMARK)
def dead_first(origin: Origin, _: Counter) -> Iterator[Measure]:
    """Time of the first request of a new client whose first address is dead."""
    for name, address in (("refused", REFUSING), ("black-hole", HOLE), ("silent-tls", SILENT)):
        # What a refusal costs is far below a millisecond; it takes more requests to be seen.
        number, parts = ("10", 4) if address == REFUSING else ("3", 1)
        options = [*of_small(origin), *origin.write_list([address, GOOD[0]]), "-n", number, "-c", "1", "--cold", "yes",
                   "--probes", "no"]
        yield Measure(f"dead-first/{name}", "ms", time_of(options, {"NETOPT_REGION": "here"}), parts=parts)


@line(BENCHMARK)
def hosts(origin: Origin, _: Counter) -> Iterator[Measure]:
    """CPU a request to 1,000 hosts with ten addresses each."""
    options = ["hosts", "--cacert", origin.authority, "--port", str(origin.ports["everywhere"]), *origin.expect("/small"),
               "-n", "10000", "--hosts", "1000", "--addresses", "10"]

    def take(tree: Tree) -> float:
        done = run([tree.benchmark, *options])
        return (done["cpu_user_s"] + done["cpu_sys_s"]) / done["requests"] * 1e6

    yield Measure("hosts/1000x10", "us CPU", take, parts=2)


@line(BENCHMARK)
def waiting(origin: Origin, _: Counter) -> Iterator[Measure]:
    """Memory of 10,000 requests at once."""
    options = ["waiting", "--url", origin.url("/small"), *origin.connect_to(), "-n", "10000", "--rounds", "1",
               "--server-pid", str(origin.pid)]

    def take(tree: Tree) -> float:
        done = run([tree.benchmark, *options])
        return (done["waiting_kib"][0] - done["before_kib"]) / 10_000

    yield Measure("waiting", "KiB each", take)


@line(BENCHMARK)
def instructions(_: Origin, counter: Counter) -> Iterator[Measure]:
    """Instructions a request: finer than CPU, and blind to what memory costs."""
    for streams, executor in ((100, "loop"), (100, "pool"), (10, "loop"), (1, "loop")):
        yield Measure(
            f"instructions/{streams}/{executor}", "instructions",
            lambda tree, streams=streams, executor=executor: counter.request(tree.benchmark, streams, executor).instructions,
            is_count=True)


def each(name: str, counter: Counter, command: Callable[[Tree, int], list[str]], short: int, long: int) -> Measure:
    """A measure of what one of many costs, in instructions."""
    return Measure(
        name, "instructions", lambda tree: counter.each(lambda number: command(tree, number), short, long).instructions,
        is_count=True)


@line(BENCHMARK)
def routing(_: Origin, counter: Counter) -> Iterator[Measure]:
    """Instructions for plans and lists."""
    for kind in ("unchanged", "changed"):
        yield each(
            f"planning/{kind}", counter,
            lambda tree, number, kind=kind: [tree.benchmark, "planning", "--only", kind, "-n", str(number)], 1000, 6000)
    yield each("list", counter, lambda tree, number: [tree.benchmark, "list", "-n", str(number)], 1, 3)


@line(BENCHMARK)
def signing(_: Origin, counter: Counter) -> Iterator[Measure]:
    """Instructions to sign and to verify, with a body of 1 KB."""
    for kind in ("sign", "verify"):
        yield each(
            f"signing/{kind}", counter,
            lambda tree, number, kind=kind: [tree.benchmark, "signing", "--only", kind, "-n", str(number)], 1000, 6000)


@line(BENCHMARK, CACHE)
def cached(_: Origin, counter: Counter) -> Iterator[Measure]:
    """Instructions for hits in the cache: at the memory tier, through the whole client, at the disk tier."""
    yield each("cached/memory", counter, lambda tree, number: [tree.cache, "hits", str(number), "memory"], 10_000, 60_000)
    yield each(
        "cached/client", counter, lambda tree, number: [tree.benchmark, "cached", "--rounds", "1", "-n", str(number)],
        1000, 6000)
    # The program makes a fiftieth of the hits that it is told of on the disk.
    yield each(
        "cached/disk", counter, lambda tree, number: [tree.cache, "hits", str(50 * number), "disk"], 1000, 4000)


@line(COMMAND)
def start(origin: Origin, counter: Counter) -> Iterator[Measure]:
    """Instructions of the command, from its start to its end."""
    listed = origin.write_list(GOOD[:1])
    listed[listed.index("--list")] = "--iplist"
    for name, arguments in (("version", ["--version"]), ("get", ["get", origin.url("/small"), *listed, "--allow-private"])):
        yield Measure(
            f"start/{name}", "instructions",
            lambda tree, arguments=arguments: counter.run([tree.command, *arguments]).instructions, is_count=True)
