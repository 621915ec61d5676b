import NetOptCore

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
    /// The same, after all questions that are asked of the runs.
    package fileprivate(set) var adjusted: Double
    /// Whether it is significant.
    package fileprivate(set) var isSignificant = false
    /// Whether both runs say how far their requests depend on those before them; otherwise they count as independent.
    package let knowsDependence: Bool

    /// By how many microseconds the second run's median is larger.
    package var shift: Int64 { after - before }
    /// The same as a share of the first run's.
    package var relative: Double { before > 0 ? Double(shift) / Double(before) : 0 }
  }

  /// A target that had a median in the first run; in the second one it was left out, or has none although enough requests were
  /// sent.
  package struct Loss: Hashable, Sendable {
    /// The target.
    package let id: String
    /// The block in which it had one.
    package let block: Block
    /// The median in the first run, in microseconds.
    package let before: Int64
    /// Why there is none any more.
    package let reason: String
  }

  /// How many requests a target did not answer in each run.
  package struct Failures: Sendable {
    /// The target.
    package let id: String
    /// In the first run: how many failed of how many.
    package let before: (count: Int, of: Int)
    /// In the second one.
    package let after: (count: Int, of: Int)
    /// How likely shares as different are when nothing has changed, and how that came about.
    package let test: ProportionTest
    /// The same, after all questions that are asked of the runs.
    package fileprivate(set) var adjusted: Double
    /// Whether it is significant.
    package fileprivate(set) var isSignificant = false

    /// Whether more failed in the second run.
    package var isWorse: Bool {
      Double(after.count) * Double(before.of) > Double(before.count) * Double(after.of)
    }
  }

  /// What is always to be said.
  package static let caution =
    "the runs were not interleaved: a difference may be the network's as well as the servers'"

  /// The runs' names.
  package let runs: (before: [String], after: [String])
  /// The targets that both have medians of.
  package private(set) var entries: [Entry] = []
  /// The targets that lost theirs.
  package private(set) var lost: [Loss] = []
  /// The failures of the targets that failed in one of the runs, and were measured in both.
  package private(set) var failures: [Failures] = []
  /// The targets of which nothing can be said: only one run has them, or too few requests, or no median before.
  package private(set) var missing: [String] = []

  /// Compares.
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
    // One family: whoever reads the exit code asks all of these questions at once.
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

  /// Whether a target became slower or fails more often, and that is no chance, or has no median any more.
  package var hasRegression: Bool {
    !lost.isEmpty || entries.contains { $0.isSignificant && $0.shift > 0 }
      || failures.contains { $0.isSignificant && $0.isWorse }
  }

  /// Whether a run does not say how far its requests depend on those before them.
  package var assumesIndependence: Bool { entries.contains { !$0.knowsDependence } }

  private static func loss(_ a: SavedRun.Target, _ b: SavedRun.Target, _ median: MedianReader) -> Loss? {
    for block in [Block.warm, .cold] {
      guard a.exclusion == nil, let first = a.blocks[block]?.response,
        let before = median.before(first)?.value
      else { continue }
      if let exclusion = b.exclusion {
        // No way there from that machine is no fault of the address.
        if exclusion.code == SampleFailure.unreachable { return nil }
        return Loss(id: a.id, block: block, before: before, reason: exclusion.reason)
      }
      // Too few requests say nothing, however they ended.
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

  private static func entry(_ a: SavedRun.Target, _ b: SavedRun.Target, _ median: MedianReader) -> Entry? {
    for block in [Block.warm, .cold] {
      guard let first = a.blocks[block], let second = b.blocks[block],
        let x = median.before(first.response), let y = median.after(second.response)
      else { continue }
      let factors = (first.dependence ?? 1, second.dependence ?? 1)
      // The interval of a difference from those of its parts (Zou, Donner 2008), which dependence makes wider.
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

  private static func hypotenuse(_ a: Double, _ b: Double) -> Double { (a * a + b * b).squareRoot() }
}

/// Reads medians of two runs with intervals of one level. Those that a run has written were measured, and their intervals are of the
/// run's level; for another one the histogram has them, with three digits.
private struct MedianReader {
  private let order: OrderStatistics
  private let isOfLevel: (before: Bool, after: Bool)

  init(alpha: Double, levels: (Double?, Double?)) {
    order = OrderStatistics(confidence: 1 - alpha)
    isOfLevel = (levels.0 == alpha, levels.1 == alpha)
  }

  /// How many requests a median needs.
  var needed: Int { order.needed(for: .p50) }

  func before(_ times: SavedRun.Times) -> (value: Int64, low: Int64, high: Int64)? {
    median(times, isOfLevel.before)
  }

  func after(_ times: SavedRun.Times) -> (value: Int64, low: Int64, high: Int64)? {
    median(times, isOfLevel.after)
  }

  /// Whether there is a median, be an end of its interval among the requests that timed out or not.
  func hasValue(_ times: SavedRun.Times) -> Bool {
    times.total >= needed && times.histogram.total >= UInt64(Percentile.p50.nearestRank(of: times.total))
  }

  private func median(_ times: SavedRun.Times, _ isOfLevel: Bool) -> (value: Int64, low: Int64, high: Int64)?
  {
    if isOfLevel, let median = times.median { return median }
    guard let ranks = order.ranks(of: .p50, count: times.total),
      let found = times.histogram.value(atRank: UInt64(Percentile.p50.nearestRank(of: times.total))),
      let low = times.histogram.value(atRank: UInt64(ranks.lowerBound)),
      let high = times.histogram.value(atRank: UInt64(ranks.upperBound))
    else { return nil }
    // The measured value is more exact than its bucket, of which an end may be the bucket's other side.
    let value = times.median?.value ?? found
    return (value, min(low, value), max(high, value))
  }
}
