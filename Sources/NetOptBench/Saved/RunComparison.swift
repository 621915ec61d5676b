import NetOptCore

/// Compares two saved runs, target by target. The runs were not interleaved, so the network may have changed
/// between them. No test can distinguish such a change from a change of the servers.
package struct RunComparison: Sendable {
  /// The medians of a target in both runs, and the test of their difference.
  package struct Entry: Sendable {
    /// The target's name.
    package let id: String
    /// The block of the medians: the warm block when both runs have a median there, otherwise the cold block.
    package let block: Block
    /// The median in the first run, in microseconds.
    package let before: Int64
    /// The median in the second run, in microseconds.
    package let after: Int64
    /// The confidence interval of `shift`, in microseconds.
    package let interval: ClosedRange<Double>
    /// The p value of the rank-sum test: the probability of a difference at least as large when the target
    /// has not changed.
    package let p: Double
    /// The p value with Holm's adjustment for all tests of this comparison of runs.
    package fileprivate(set) var adjusted: Double
    /// Whether `adjusted` is below the significance level, and the difference exceeds the minimum effect.
    package fileprivate(set) var isSignificant = false
    /// Whether both runs contain the factor of the serial dependence of their requests. The requests of a run
    /// without it count as independent.
    package let knowsDependence: Bool

    /// The median in the second run minus the median in the first run, in microseconds.
    package var shift: Int64 { after - before }
    /// The shift as a share of the first run's median.
    package var relative: Double { before > 0 ? Double(shift) / Double(before) : 0 }
  }

  /// A target that has a median in the first run and none in the second run, because the second run excluded
  /// it, or because too many of its requests failed. Two cases are not a loss: the target has too few
  /// requests for a median, or the machine of the second run has no route to it.
  package struct Loss: Hashable, Sendable {
    /// The target's name.
    package let id: String
    /// The block of the median in the first run.
    package let block: Block
    /// The median in the first run, in microseconds.
    package let before: Int64
    /// The reason why the second run has no median.
    package let reason: String
  }

  /// The failed requests of a target in each run.
  package struct Failures: Sendable {
    /// The target's name.
    package let id: String
    /// The first run: the number of failed requests (`count`) of all requests (`of`).
    package let before: (count: Int, of: Int)
    /// The second run: the number of failed requests (`count`) of all requests (`of`).
    package let after: (count: Int, of: Int)
    /// The test of whether the shares of failed requests are equal in both runs.
    package let test: ProportionTest
    /// The p value of `test` with Holm's adjustment for all tests of this comparison of runs.
    package fileprivate(set) var adjusted: Double
    /// Whether `adjusted` is below the significance level.
    package fileprivate(set) var isSignificant = false

    /// Whether the share of failed requests is larger in the second run.
    package var isWorse: Bool {
      Double(after.count) * Double(before.of) > Double(before.count) * Double(after.of)
    }
  }

  /// The caution that every comparison prints.
  package static let caution =
    "the runs were not interleaved: a difference can come from the network or from the servers"

  /// The names of the runs. A merged run has several.
  package let runs: (before: [String], after: [String])
  /// The targets with a median in both runs.
  package private(set) var entries: [Entry] = []
  /// The targets that lost their median.
  package private(set) var lost: [Loss] = []
  /// The failed requests of each target that sent requests in both runs and failed in at least one of them.
  package private(set) var failures: [Failures] = []
  /// The names of the targets in neither `entries` nor `lost`. Only one run has such a target, or it has no
  /// median in one of the runs for a reason that is not a loss.
  package private(set) var missing: [String] = []

  /// Compares two runs.
  ///
  /// - Parameters:
  ///   - before: the first run.
  ///   - after: the second run.
  ///   - alpha: the significance level.
  ///   - minimumEffect: a difference is significant only if it exceeds this share of the median in the first
  ///     run.
  package init(_ before: SavedRun, _ after: SavedRun, alpha: Double, minimumEffect: Double) {
    runs = (before.runs, after.runs)
    let others = Dictionary(uniqueKeysWithValues: after.targets.map { ($0.id, $0) })
    let median = MedianReader(alpha: alpha, levels: (before.alpha, after.alpha))
    for target in before.targets {
      guard let other = others[target.id] else {
        missing.append(target.id)
        continue
      }
      let loss = Self.loss(target, other, median)
      if let loss { lost.append(loss) }
      if let entry = Self.entry(target, other, median) {
        entries.append(entry)
      } else if loss == nil {
        missing.append(target.id)
      }
      if let found = Self.failures(target, other) { failures.append(found) }
    }
    let known = Set(before.targets.map(\.id))
    missing += after.targets.map(\.id).filter { !known.contains($0) }
    // All tests are adjusted together, because the exit code depends on all of them.
    let adjusted = Holm.adjusted(entries.map(\.p) + failures.map(\.test.p))
    for index in entries.indices {
      entries[index].adjusted = adjusted[index]
      entries[index].isSignificant =
        adjusted[index] < alpha && abs(entries[index].relative) > minimumEffect
    }
    for index in failures.indices {
      failures[index].adjusted = adjusted[entries.count + index]
      failures[index].isSignificant = failures[index].adjusted < alpha
    }
  }

  /// Whether a target became significantly slower, fails significantly more often, or lost its median.
  package var hasRegression: Bool {
    !lost.isEmpty || entries.contains { $0.isSignificant && $0.shift > 0 }
      || failures.contains { $0.isSignificant && $0.isWorse }
  }

  /// Whether the requests of some compared target count as independent, because a run lacks the factor of
  /// their serial dependence.
  package var assumesIndependence: Bool { entries.contains { !$0.knowsDependence } }

  /// The loss of a target; `nil` when the target did not lose its median. `a` is the target in the first run,
  /// and `b` the target in the second run.
  private static func loss(_ a: SavedRun.Target, _ b: SavedRun.Target, _ median: MedianReader) -> Loss? {
    for block in [Block.warm, .cold] {
      guard a.exclusion == nil, let first = a.blocks[block]?.response,
        let before = median.before(first)?.value
      else { continue }
      if let exclusion = b.exclusion {
        // The machine of the second run has no route to the address. That is not a fault of the address.
        if exclusion.code == SampleFailure.unreachable { return nil }
        return Loss(id: a.id, block: block, before: before, reason: exclusion.reason)
      }
      // Too few requests prove nothing, even if all of them failed.
      guard let found = b.blocks[block], found.requests >= median.needed, !median.hasValue(found.response)
      else { continue }
      let answered = found.response.histogram.total
      return Loss(
        id: a.id, block: block, before: before,
        reason: "\(answered) of \(found.requests) requests were answered"
          + (found.response.timeouts > 0 ? ", \(found.response.timeouts) timed out" : ""))
    }
    return nil
  }

  /// The failed requests of a target in both runs, where `a` is the target in the first run; `nil` when a run
  /// sent no request to it, or when no request failed.
  private static func failures(_ a: SavedRun.Target, _ b: SavedRun.Target) -> Failures? {
    func failed(_ target: SavedRun.Target) -> (count: Int, of: Int) {
      let all = target.counts.values.reduce(0, +)
      return (all - (target.counts[.ok] ?? 0), all)
    }
    let (before, after) = (failed(a), failed(b))
    guard before.of > 0, after.of > 0, before.count + after.count > 0 else { return nil }
    let test = ProportionTest(before, after)
    return Failures(id: a.id, before: before, after: after, test: test, adjusted: test.p)
  }

  /// The comparison of the medians of a target, where `a` is the target in the first run; `nil` when no block
  /// has a median in both runs.
  private static func entry(_ a: SavedRun.Target, _ b: SavedRun.Target, _ median: MedianReader) -> Entry? {
    for block in [Block.warm, .cold] {
      guard let first = a.blocks[block], let second = b.blocks[block],
        let x = median.before(first.response), let y = median.after(second.response)
      else { continue }
      let factors = (first.dependence ?? 1, second.dependence ?? 1)
      // The interval of the difference follows from the intervals of both medians (Zou, Donner 2008). Serial
      // dependence makes the interval wider.
      let shift = Double(y.value - x.value)
      func width(_ value: Int64, _ end: Int64, _ factor: Double) -> Double {
        Double(end - value) * factor.squareRoot()
      }
      let low =
        shift - hypotenuse(width(y.value, y.low, factors.1), width(x.value, x.high, factors.0))
      let high =
        shift + hypotenuse(width(y.value, y.high, factors.1), width(x.value, x.low, factors.0))
      let p = RankSum(first.response, second.response, factors: factors).p
      return Entry(
        id: a.id, block: block, before: x.value, after: y.value, interval: low...high, p: p, adjusted: p,
        knowsDependence: first.dependence != nil && second.dependence != nil)
    }
    return nil
  }

  /// The root of the sum of squares, which combines the half widths of two intervals.
  private static func hypotenuse(_ a: Double, _ b: Double) -> Double { (a * a + b * b).squareRoot() }
}

/// Reads the medians of two runs, with intervals of the confidence that the comparison needs. A run's file
/// contains measured medians with intervals, whose confidence comes from the settings of that run. When it
/// differs from the needed confidence, the reader computes the interval from the histogram, which is exact to
/// three digits.
private struct MedianReader {
  /// Computes intervals with the needed confidence.
  private let order: OrderStatistics
  /// For each run, whether the intervals in its file have the needed confidence.
  private let hasSameLevel: (before: Bool, after: Bool)

  /// Makes a reader.
  ///
  /// - Parameters:
  ///   - alpha: the significance level; the intervals have the confidence 1 - `alpha`.
  ///   - levels: the significance levels of the two runs; `nil` when a file does not contain it.
  init(alpha: Double, levels: (Double?, Double?)) {
    order = OrderStatistics(confidence: 1 - alpha)
    hasSameLevel = (levels.0 == alpha, levels.1 == alpha)
  }

  /// The number of requests that a median needs.
  var needed: Int { order.needed(for: .p50) }

  /// The median of times from the first run, with its interval, in microseconds. `nil` when there are too few
  /// requests, or when a value lies among the timeouts.
  func before(_ times: SavedRun.Times) -> (value: Int64, low: Int64, high: Int64)? {
    median(times, hasSameLevel.before)
  }

  /// The median of times from the second run, with its interval, in microseconds. `nil` in the cases of
  /// `before`.
  func after(_ times: SavedRun.Times) -> (value: Int64, low: Int64, high: Int64)? {
    median(times, hasSameLevel.after)
  }

  /// Whether there are enough requests for a median and the median does not lie among the timeouts. One end
  /// of its confidence interval may lie among them.
  func hasValue(_ times: SavedRun.Times) -> Bool {
    times.total >= needed && times.histogram.total >= UInt64(Percentile.p50.nearestRank(of: times.total))
  }

  /// The median of times of a run, with its interval. When the interval in the file has the needed confidence
  /// (`hasSameLevel`), median and interval come from the file. Otherwise the interval comes from the
  /// histogram.
  private func median(
    _ times: SavedRun.Times, _ hasSameLevel: Bool
  ) -> (value: Int64, low: Int64, high: Int64)? {
    if hasSameLevel, let median = times.median { return median }
    guard let ranks = order.ranks(of: .p50, count: times.total),
      let found = times.histogram.value(atRank: UInt64(Percentile.p50.nearestRank(of: times.total))),
      let low = times.histogram.value(atRank: UInt64(ranks.lowerBound)),
      let high = times.histogram.value(atRank: UInt64(ranks.upperBound))
    else { return nil }
    // The file's measured median is more precise than the median from the histogram. It may lie outside the
    // interval by up to the width of a counter's range. The interval is then extended to contain it.
    let value = times.median?.value ?? found
    return (value, min(low, value), max(high, value))
  }
}
