"""How much dearer one tree is than another, from pairs of measurements. No measuring here."""

from dataclasses import asdict, dataclass
from math import exp, log, sqrt
from statistics import NormalDist, fmean, median, stdev

CONFIDENCE = 0.95
# With fewer the interval is mostly that of the quantile.
LEAST_PAIRS = 15


def t_quantile(probability: float, freedom: int) -> float:
    """Student's t, by the expansion around the normal distribution (Abramowitz and Stegun, 26.7.5); its error is below 0.0001
    from 14 degrees of freedom on.

    >>> round(t_quantile(0.975, 14), 3), round(t_quantile(0.975, 29), 3), round(t_quantile(0.5, 14), 3)
    (2.145, 2.045, 0.0)
    """
    z = NormalDist().inv_cdf(probability)
    terms = (
        (z ** 3 + z) / 4,
        (5 * z ** 5 + 16 * z ** 3 + 3 * z) / 96,
        (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / 384,
    )
    return z + sum(term / freedom ** power for power, term in enumerate(terms, start=1))


def interval(ratios: list[float]) -> tuple[float, float]:
    """The 95 % interval of the geometric mean: Student's t on the logarithms of the ratios.

    Not the bootstrap: with 15 pairs its percentile interval of the mean covered the truth in 90 to 92 % of simulated series
    (normal noise, normal with 15 % of outliers, t with 3 degrees of freedom), t in 95 to 97 %. The bootstrap would fail twice as
    many trees that are as fast as the other.

    >>> low, high = interval([1.0, 1.1] * 8)
    >>> round(low, 3), round(high, 3)
    (1.022, 1.077)
    >>> interval([2.0] * 15)
    (2.0, 2.0)
    >>> swapped = interval([1 / 1.0, 1 / 1.1] * 8)
    >>> round(1 / swapped[1], 9) == round(low, 9)
    True
    """
    logarithms = [log(ratio) for ratio in ratios]
    middle = fmean(logarithms)
    reach = t_quantile((1 + CONFIDENCE) / 2, len(ratios) - 1) * stdev(logarithms) / sqrt(len(ratios))
    return exp(middle - reach), exp(middle + reach)


@dataclass
class Comparison:
    """A figure of this tree and of another one."""

    name: str
    unit: str
    ours: float
    theirs: float
    ratio: float
    interval: tuple[float, float]
    bound: float
    pairs: list[float]

    @property
    def is_beyond(self) -> bool:
        """Whether all of the interval lies above the bound.

        >>> compared("x", "us", [1.05] * 15, [1.0] * 15, 1.03).is_beyond
        True
        >>> compared("x", "us", [1.0, 1.1] * 8, [1.0, 1.0] * 8, 1.03).is_beyond
        False
        """
        return self.interval[0] > self.bound

    @property
    def verdict(self) -> str:
        """The verdict for people: a figure that may be beyond the bound as well is within, and marked.

        >>> compared("x", "us", [1.0, 1.1] * 8, [1.0, 1.0] * 8, 1.03).verdict
        'ok, but too noisy to exclude 1.077'
        """
        if self.is_beyond:
            return "BEYOND"
        return "ok" if self.interval[1] <= self.bound else f"ok, but too noisy to exclude {self.interval[1]:.3f}"

    def to_json(self) -> dict:
        return {**asdict(self), "interval": list(self.interval), "beyond": self.is_beyond}


def compared(name: str, unit: str, ours: list[float], theirs: list[float], bound: float) -> Comparison:
    """Compares what was measured in pairs.

    >>> result = compared("x", "us", [2.0] * 15, [1.0] * 15, 1.03)
    >>> round(result.ratio, 6), result.ours, result.theirs
    (2.0, 2.0, 1.0)
    """
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    middle = exp(fmean(log(ratio) for ratio in ratios))
    return Comparison(name, unit, median(ours), median(theirs), middle, interval(ratios), bound, ratios)


def counted(name: str, unit: str, ours: list[float], theirs: list[float], bound: float) -> Comparison:
    """Compares counts, which do not vary but upwards: the least of each, without an interval.

    >>> result = counted("x", "instructions", [104.0, 105.0], [100.0, 110.0], 1.03)
    >>> result.ratio, result.interval, result.is_beyond
    (1.04, (1.04, 1.04), True)
    """
    ratio = min(ours) / min(theirs)
    return Comparison(name, unit, min(ours), min(theirs), ratio, (ratio, ratio), bound, [ratio])


def comparison_table(comparisons: list[Comparison]) -> str:
    """The comparisons for people.

    >>> print(comparison_table([counted("list", "instructions", [104.0], [100.0], 1.03)]))
    line                           this tree   the other  ratio  interval        bound
    list                              104.00      100.00  1.040  1.040-1.040   <= 1.03  BEYOND  (instructions)
    """
    lines = [f"{'line':<26} {'this tree':>13} {'the other':>11}  ratio  {'interval':<13} {'bound':>7}"]
    for each in comparisons:
        low, high = each.interval
        lines.append(
            f"{each.name:<26} {each.ours:>13.2f} {each.theirs:>11.2f}  {each.ratio:.3f}  {low:.3f}-{high:.3f}   "
            f"<= {each.bound:g}  {each.verdict}  ({each.unit})")
    return "\n".join(lines)


def turns(pair: int, parts: int) -> list[bool]:
    """The order of the runs that make up a pair, true for this tree: A B B A A B …, the next pair B A A B B A …. What drifts
    falls on both alike.

    >>> turns(0, 1), turns(1, 1)
    ([True, False], [False, True])
    >>> turns(0, 4)
    [True, False, False, True, True, False, False, True]
    """
    return [(index + 1) // 2 % 2 == pair % 2 for index in range(2 * parts)]
