package import NetOptCore

/// Two saved runs beside each other, target by target. They were not interleaved: the network may have changed in between, and no
/// test can tell that from a change of the servers.
package struct RunComparison: Sendable {
  /// How a target did in both.
  package struct Entry: Sendable {
    /// The target.
    package let id: String
    /// The block that is compared: the warm one, when both have it.
    package let block: Block
    /// The median in the first run, in microseconds.
    package let before: Int64
    /// The median in the second run.
    package let after: Int64
    /// What the difference of the medians may be.
    package let interval: ClosedRange<Double>
    /// How likely values as different are when nothing has changed, by the rank-sum test.
    package let p: Double
    /// The same, after as many questions as there are targets.
    package var adjusted: Double
    /// Whether it is significant.
    package var isSignificant = false

    /// By how many microseconds the second run's median is larger.
    package var shift: Int64 { after - before }
    /// The same as a share of the first run's.
    package var relative: Double { before > 0 ? Double(shift) / Double(before) : 0 }
  }

  /// What is always to be said.
  package static let caution =
    "the runs were not interleaved: a difference may be the network's as well as the servers'"

  /// The runs' names.
  package let runs: (before: [String], after: [String])
  /// The targets that both have medians of.
  package private(set) var entries: [Entry] = []
  /// The targets that one of them does not have, or has no median of.
  package private(set) var missing: [String] = []

  /// Compares.
  package init(_ before: SavedRun, _ after: SavedRun, alpha: Double, minimumEffect: Double) {
    runs = (before.runs, after.runs)
    for target in before.targets {
      guard let other = after.targets.first(where: { $0.id == target.id }),
        let entry = Self.entry(target, other, alpha)
      else {
        missing.append(target.id)
        continue
      }
      entries.append(entry)
    }
    missing += after.targets.map(\.id).filter { id in !before.targets.contains { $0.id == id } }
    for (index, adjusted) in Holm.adjusted(entries.map(\.p)).enumerated() {
      entries[index].adjusted = adjusted
      entries[index].isSignificant = adjusted < alpha && abs(entries[index].relative) > minimumEffect
    }
  }

  /// Whether a target became slower, and that is no chance.
  package var hasRegression: Bool { entries.contains { $0.isSignificant && $0.shift > 0 } }

  private static func entry(_ a: SavedRun.Target, _ b: SavedRun.Target, _ alpha: Double) -> Entry? {
    for block in [Block.warm, .cold] {
      guard let first = a.blocks[block]?.response, let second = b.blocks[block]?.response,
        let (x, lowX, highX) = median(first, alpha), let (y, lowY, highY) = median(second, alpha)
      else { continue }
      // The interval of a difference from those of its parts (Zou, Donner 2008).
      let shift = Double(y - x)
      let low = shift - hypotenuse(Double(y - lowY), Double(highX - x))
      let high = shift + hypotenuse(Double(highY - y), Double(x - lowX))
      let p = rankSum(first, second)
      return Entry(id: a.id, block: block, before: x, after: y, interval: low...high, p: p, adjusted: p)
    }
    return nil
  }

  private static func median(_ times: SavedRun.Times, _ alpha: Double) -> (Int64, Int64, Int64)? {
    if let median = times.median { return (median.value, median.low, median.high) }
    guard let ranks = OrderStatistics(confidence: 1 - alpha).ranks(of: .p50, count: times.total),
      let value = times.histogram.value(atRank: UInt64(Percentile.p50.nearestRank(of: times.total))),
      let low = times.histogram.value(atRank: UInt64(ranks.lowerBound)),
      let high = times.histogram.value(atRank: UInt64(ranks.upperBound))
    else { return nil }
    return (value, low, high)
  }

  private static func hypotenuse(_ a: Double, _ b: Double) -> Double { (a * a + b * b).squareRoot() }

  /// The rank-sum test of Mann and Whitney over the buckets of two histograms, each of which is a tie; timeouts are the largest
  /// values.
  private static func rankSum(_ a: SavedRun.Times, _ b: SavedRun.Times) -> Double {
    var counts: [Int64: (Double, Double)] = [:]
    for bucket in a.histogram.buckets {
      counts[bucket.values.lowerBound, default: (0, 0)].0 += Double(bucket.count)
    }
    for bucket in b.histogram.buckets {
      counts[bucket.values.lowerBound, default: (0, 0)].1 += Double(bucket.count)
    }
    counts[.max] = (Double(a.timeouts), Double(b.timeouts))
    let (m, n) = (Double(a.total), Double(b.total))
    var (below, sum, ties) = (0.0, 0.0, 0.0)
    for key in counts.keys.sorted() {
      guard let (x, y) = counts[key] else { continue }
      let t = x + y
      sum += x * (below + (t + 1) / 2)
      ties += t * t * t - t
      below += t
    }
    let variance = m * n / 12 * (m + n + 1 - ties / max(1, (m + n) * (m + n - 1)))
    guard variance > 0 else { return 1 }
    return min(1, 2 * NormalDistribution.upperTail(abs(sum - m * (m + n + 1) / 2) / variance.squareRoot()))
  }

  /// The comparison for programs: `docs/schemas/compare.schema.json`.
  package var json: JSONValue {
    [
      "schema_version": 1, "tool": "netopt compare",
      "before": .array(runs.before.map(JSONValue.string)), "after": .array(runs.after.map(JSONValue.string)),
      "interleaved": false,
      "comparisons": .array(
        entries.map { entry in
          [
            "target": .string(entry.id), "block": .string(entry.block.rawValue),
            "before_us": .integer(entry.before), "after_us": .integer(entry.after),
            "shift_us": .integer(entry.shift),
            "lo": .number(entry.interval.lowerBound.rounded()),
            "hi": .number(entry.interval.upperBound.rounded()),
            "p": .number(entry.p), "p_adjusted": .number(entry.adjusted), "method": "rank-sum of histograms",
            "significant": .bool(entry.isSignificant),
          ]
        }),
      "missing": .array(missing.map(JSONValue.string)), "regression": .bool(hasRegression),
    ]
  }

  /// The comparison for people.
  package var text: String {
    let time = Milliseconds(smallest: entries.map { min($0.before, $0.after) }.min())
    let names = "\(runs.before.joined(separator: "+")) -> \(runs.after.joined(separator: "+"))"
    var lines = [TextLayout.cut("netopt compare  \(TextLayout.printable(names))", to: TextLayout.width), ""]
    if !entries.isEmpty {
      let width = min(24, max(13, entries.map(\.id.count).max() ?? 0))
      lines.append(
        TextLayout.left("TARGET", width) + TextLayout.right("before", 10) + TextLayout.right("after", 10)
          + "   p50, ms [difference]")
      for entry in entries {
        let ends = [entry.interval.lowerBound, entry.interval.upperBound].map {
          time.text(Int64($0.rounded()))
        }
        let verdict =
          entry.isSignificant
          ? Milliseconds.percent(entry.relative) + "%"
          : "~ (\(PValue.text(entry.adjusted)))"
        let cells =
          TextLayout.right(time.text(entry.before), 10) + TextLayout.right(time.text(entry.after), 10) + "   "
          + "\(verdict) [\(ends.joined(separator: " "))]" + (entry.block == .cold ? " cold" : "")
        let id = TextLayout.printable(entry.id)
        lines +=
          id.count <= width ? [TextLayout.left(id, width) + cells] : [id, TextLayout.left("", width) + cells]
      }
      lines.append("")
    }
    if !missing.isEmpty {
      lines += TextLayout.hanging(
        "NOTE    ", "without medians in both runs: \(TextLayout.printable(missing.joined(separator: ", ")))")
    }
    lines += TextLayout.hanging("NOTE    ", Self.caution)
    return lines.map { $0 + "\n" }.joined()
  }
}
