"""What a measurement came to, and whether that is within bounds. No measuring here."""

from dataclasses import asdict, dataclass, field
from statistics import median


@dataclass
class Result:
    """A line of the budget."""

    name: str
    unit: str
    netopt: float
    floor: float | None
    # What the bound is about: a ratio to the floor, or a figure in `unit`.
    value: float
    spread: tuple[float, float]
    bound: float
    least: bool = False
    note: str = ""
    pairs: list[float] = field(default_factory=list)

    @property
    def is_within(self) -> bool:
        return self.value >= self.bound if self.least else self.value <= self.bound

    def to_json(self) -> dict:
        return {**asdict(self), "spread": list(self.spread), "within": self.is_within}


def interval(values: list[float]) -> tuple[float, float]:
    """The order statistics around the median that cover it with at least 90 %, else the extremes.

    >>> interval([3, 1, 2])
    (1, 3)
    >>> interval([7, 1, 2, 3, 4, 5, 6])
    (1, 7)
    >>> interval([float(n) for n in range(11)])
    (2.0, 8.0)
    """
    ordered = sorted(values)
    count = len(ordered)
    # The chance that fewer than k + 1 of n lie below the median, on both sides: binomial with 1/2.
    chance, below, term = 0.0, 0, 0.5 ** count
    while below < count // 2:
        chance += 2 * term
        if chance > 0.10:
            break
        term = term * (count - below) / (below + 1)
        below += 1
    low = max(0, below - 1)
    return ordered[low], ordered[count - 1 - low]


def paired(name: str, ours: list[float], floor: list[float], bound: float, unit: str = "us CPU") -> Result:
    """A line whose bound is the median of the ratios of pairs.

    >>> result = paired("x", [9, 10, 11], [10, 10, 10], 1.0)
    >>> result.value, result.is_within
    (1.0, True)
    """
    ratios = [a / b for a, b in zip(ours, floor, strict=True)]
    return Result(name, unit, median(ours), median(floor), median(ratios), interval(ratios), bound, pairs=ratios)


def figure(
    name: str, values: list[float], bound: float, unit: str, floor: float | None = None, least: bool = False,
    note: str = "",
) -> Result:
    """A line whose bound is the median of figures.

    >>> figure("x", [3.0, 1.0, 2.0], 1.5, "ms").is_within
    False
    >>> figure("x", [3.0, 1.0, 2.0], 1.5, "ms", least=True).is_within
    True
    """
    return Result(name, unit, median(values), floor, median(values), interval(values), bound, least, note)


def table(results: list[Result]) -> str:
    """The results for people.

    >>> print(table([figure("start", [3.0], 15, "ms")]))
    line                            netopt     floor      value  spread            bound
    start                             3.00         -      3.000  3.000-3.000     <= 15      ok  (ms)
    """
    lines = [f"{'line':<26} {'netopt':>11} {'floor':>9} {'value':>10}  {'spread':<15} {'bound':>7}"]
    for result in results:
        floor = "-" if result.floor is None else f"{result.floor:.2f}"
        spread = f"{result.spread[0]:.3f}-{result.spread[1]:.3f}"
        verdict = "ok" if result.is_within else f"OVER by {abs(result.value - result.bound):.3f}"
        sign = ">=" if result.least else "<="
        lines.append(
            f"{result.name:<26} {result.netopt:>11.2f} {floor:>9} {result.value:>10.3f}  {spread:<15} "
            f"{sign} {result.bound:<6g}  {verdict}  ({result.unit}){' ' + result.note if result.note else ''}")
    return "\n".join(lines)


def changes(
    recorded: dict[str, float], measured: dict[str, float], tolerances: dict[str, float],
) -> list[tuple[str, float, bool]]:
    """How figures have changed: name, change, and whether it is a change for the worse beyond what their kind, the first
    part of the name, is allowed.

    >>> changes({"a/1": 100, "b/1": 100}, {"a/1": 104, "b/1": 106}, {"a": 0.05, "b": 0.05})
    [('a/1', 0.04, False), ('b/1', 0.06, True)]
    >>> changes({"a/1": 100}, {"a/1": 50, "a/2": 1}, {"a": 0.05})
    [('a/1', -0.5, False)]
    """
    found = []
    for name, before in recorded.items():
        change = round(measured[name] / before - 1, 6)
        found.append((name, change, change > tolerances[name.split("/")[0]]))
    return found
