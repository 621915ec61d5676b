"""Compares the bench's statistics with SciPy and NumPy, and its histograms with hdrhistogram.

Usage: bench_peers.py statistics FILE
       bench_peers.py histograms FILE

FILE is a JSON file with data sets and the results of netopt. Each wrong result gives a line of output. The last
line of `statistics` counts the checked sets and intervals. The last line of `histograms` is the histogram of the
first data set as hdrhistogram encodes it, for netopt to decode.
"""

import json
import sys

import numpy as np


def close(a, b, tolerance=1e-6):
    """Whether `a` differs from `b` by at most `tolerance`, relative to `b` when `b` is greater than 1."""
    return abs(a - b) <= tolerance * max(1.0, abs(b))


def p_value(x, exact):
    """The p value of the signed-rank test on the differences `x`: exact, or by the normal approximation."""
    from scipy.stats import wilcoxon
    if not np.any(x):
        return 1.0
    if exact:
        return wilcoxon(x, method="exact").pvalue
    return wilcoxon(x, zero_method="zsplit", correction=False, method="asymptotic").pvalue


def confidence_interval(x, exact, alpha):
    """The confidence interval of the shift: all shifts that the signed-rank test does not reject at level `alpha`.

    A Walsh average is the mean of two of the differences `x`, or one of them. The p value changes only at
    Walsh averages, so the function tests one shift between each two neighbouring Walsh averages. It finds the
    two ends by binary search. It returns `None` if the interval is empty or has no bounds.
    """
    i, j = np.triu_indices(len(x))
    walsh = np.unique((x[i] + x[j]) / 2)
    # One shift in each gap between neighbouring Walsh averages, and one beyond each end.
    gaps = np.concatenate([[walsh[0] - 1], (walsh[1:] + walsh[:-1]) / 2, [walsh[-1] + 1]])

    def accepted(k):
        """Whether the test does not reject the shift `gaps[k]`."""
        return p_value(x - gaps[k], exact) > alpha

    # A gap beside the median of the Walsh averages, where the p value is the greatest.
    middle = np.searchsorted(gaps, np.median((x[i] + x[j]) / 2))
    middle = min(max(middle, 0), len(gaps) - 1)
    if middle > 0 and not accepted(middle):
        middle -= 1
    if accepted(0) or accepted(len(gaps) - 1) or not accepted(middle):
        return None
    low, high = 0, middle
    while high - low > 1:
        k = (low + high) // 2
        low, high = (low, k) if accepted(k) else (k, high)
    lower = walsh[high - 1]
    low, high = middle, len(gaps) - 1
    while high - low > 1:
        k = (low + high) // 2
        low, high = (k, high) if accepted(k) else (low, k)
    return lower, walsh[high - 1]


def statistics(path):
    """Compares the statistics of each data set in a file with those of SciPy and NumPy."""
    from scipy import stats
    with open(path, encoding="utf-8") as file:
        sets = json.load(file)
    checked = 0
    for number, data in enumerate(sets):
        def fault(what, ours, theirs):
            """Prints a wrong result: `ours` is netopt's, and `theirs` is that of SciPy or NumPy."""
            print(f"set {number}, n={len(data['x'])}: {what}: {ours}, others have {theirs}")

        x, y = np.array(data["x"]), np.array(data["y"])
        d = x - y
        exact = data["method"] == "signed-rank exact"
        if exact and (len(d) > 50 or len(set(np.abs(d))) < len(d) or np.any(d == 0)):
            fault("method", data["method"], "normal")
        theirs = p_value(d, exact)
        if abs(theirs - data["p"]) > 1e-3 or not close(data["p"], theirs, 1e-6):
            fault("p", data["p"], theirs)
        i, j = np.triu_indices(len(d))
        theirs = np.median((d[i] + d[j]) / 2)
        if not close(data["shift"], theirs):
            fault("shift", data["shift"], theirs)
        for level, ours in data["intervals"]:
            # The exact test allows no ties. Two equal differences are tied at every shift. Two unequal
            # differences are tied only at the shift that is their Walsh average, and `confidence_interval`
            # tests no Walsh average.
            has_ties = len(set(d)) < len(d)
            theirs = confidence_interval(d, not has_ties and len(d) <= 50, 1 - level)
            if (ours is None) != (theirs is None):
                fault(f"interval {level}", ours, theirs)
            elif ours is not None and not (close(ours[0], theirs[0]) and close(ours[1], theirs[1])):
                fault(f"interval {level}", ours, theirs)
            checked += 1
        for share, value, ranks in data["percentiles"]:
            theirs = np.percentile(x, share * 100, method="inverted_cdf")
            if not close(value, theirs):
                fault(f"percentile {share}", value, theirs)
            n = len(x)
            b = stats.binom(n, share)
            low = max((r for r in range(1, n + 1) if b.cdf(r - 1) <= 0.025), default=None)
            high = min((r for r in range(1, n + 1) if b.sf(r - 1) <= 0.025), default=None)
            theirs = None if low is None or high is None else [low, high]
            if ranks != theirs:
                fault(f"ranks of {share}", ranks, theirs)
        median = np.percentile(x, 50, method="inverted_cdf")
        theirs = np.percentile(np.abs(x - median), 50, method="inverted_cdf")
        if not close(data["mad"], theirs):
            fault("mad", data["mad"], theirs)
        theirs = stats.kendalltau(x, y).statistic
        if not close(data["tau"], theirs):
            fault("tau", data["tau"], theirs)
        k, n = data["wilson"]["k"], data["wilson"]["n"]
        theirs = stats.binomtest(k, n).proportion_ci(0.95, "wilson")
        if not (close(data["wilson"]["low"], theirs.low) and close(data["wilson"]["high"], theirs.high)):
            fault("wilson", data["wilson"], theirs)
        theirs = stats.t.ppf(0.975, data["freedom"])
        if not close(data["t"], theirs):
            fault("t", data["t"], theirs)
        values = data["holm"]["values"]
        order = np.argsort(values)
        adjusted, largest = [0.0] * len(values), 0.0
        for step, index in enumerate(order):
            largest = max(largest, min(1.0, values[index] * (len(values) - step)))
            adjusted[index] = largest
        if not np.allclose(adjusted, data["holm"]["adjusted"], atol=1e-12):
            fault("holm", data["holm"]["adjusted"], adjusted)
    print(f"checked {len(sets)} sets, {checked} intervals")


def histograms(path):
    """Compares netopt's histogram of each data set in a file with the histogram of hdrhistogram."""
    from hdrh.histogram import HdrHistogram
    with open(path, encoding="utf-8") as file:
        sets = json.load(file)
    for number, data in enumerate(sets):
        theirs = HdrHistogram(1, 60_000_000, 3)
        for value in data["values"]:
            theirs.record_value(min(value, 60_000_000))
        ours = HdrHistogram.decode(data["encoded"])
        if ours.get_total_count() != len(data["values"]):
            print(f"histogram {number}: {ours.get_total_count()} values, not {len(data['values'])}")
        for index in range(theirs.counts_len):
            if ours.get_count_at_index(index) != theirs.get_count_at_index(index):
                print(f"histogram {number}: counter {index} differs")
        for percentile, value in data["percentiles"]:
            other = theirs.get_value_at_percentile(percentile)
            if other != value:
                print(f"histogram {number}: p{percentile} is {value}, not {other}")
    one = HdrHistogram(1, 60_000_000, 3)
    for value in sets[0]["values"]:
        one.record_value(min(value, 60_000_000))
    print("encoded", one.encode().decode())


{"statistics": statistics, "histograms": histograms}[sys.argv[1]](sys.argv[2])
