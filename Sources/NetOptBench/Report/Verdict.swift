import NetOptCore

/// The conclusion of a run in one sentence.
struct Verdict {
  /// The sentence.
  let text: String

  /// Makes the sentence; `nil` when fewer than two targets have a p50 in the ranking block.
  init?(_ report: BenchReport) {
    let ranks = report.ranks
    guard let best = ranks.first?.target, ranks.count > 1, let median = best.median(report.rankingBlock)
    else {
      return nil
    }
    let time = Milliseconds(smallest: median)
    // A target that fails often is never the best, however fast its responses are.
    let failing = ranks.filter(\.target.failsOften).map(\.target.target.id)
    let sound = ranks.filter { !$0.target.failsOften }
    let failureNote = failing.isEmpty ? "" : "; not considered (too many failures): \(Self.names(failing))"
    guard !sound.isEmpty else {
      text =
        "no target is recommended: significantly more than \(Self.limit) of the requests to each target failed"
      return
    }
    guard let reference = report.reference, reference.median(report.rankingBlock) != nil else {
      text = Self.without(reference: sound.map { ($0.target.target.id, $0.rank) }) + failureNote
      return
    }
    let name = reference.target.id
    let others = sound.filter { $0.target.target != reference.target }.map(\.target)
    let comparisons = others.compactMap { report.comparison(of: $0.target.id) }
    let faster = comparisons.filter { $0.isSignificant && $0.shift < 0 }
    let sentence: String
    let asked = ranks.count { report.comparison(of: $0.target.target.id) != nil }
    let tests = "Holm, \(asked) test\(asked == 1 ? "" : "s")"
    if let most = others.lazy.compactMap({ target in faster.first { $0.a == target.target.id } }).first {
      // The fastest by p50 among the targets that are significantly faster than the reference.
      // Compared with DNS, every address of the list is "direct".
      let isAgainstDNS = reference.target.kind == .dns
      sentence =
        "\(isAgainstDNS ? "direct" : most.a) beats \(name) by \(Self.shift(most, time)) at p50 "
        + "(\(PValue.text(most.adjusted)), \(tests))"
    } else if !reference.failsOften, !comparisons.isEmpty,
      comparisons.allSatisfy({ $0.isSignificant && $0.shift > 0 })
    {
      let least = comparisons[0]
      sentence =
        "\(name) beats \(comparisons.count == 1 ? least.a : "all others") by \(Self.shift(least, time)) at p50 or more "
        + "(\(PValue.text(least.adjusted)), \(tests))"
    } else {
      sentence =
        comparisons.isEmpty
        ? "no target can be compared with \(name)"
        : reference.failsOften && comparisons.allSatisfy { $0.isSignificant && $0.shift > 0 }
          ? "no target is faster than \(name) (\(tests))"
          : "no target beats \(name): no significant difference to the best of them (\(tests))"
    }
    text = sentence + failureNote
  }

  /// The share of failed requests above which a target is not recommended, in percent: `5 %`.
  private static var limit: String { "\(Int(FailureLimit.share * 100)) %" }

  /// The names of up to three targets, or their number.
  private static func names(_ ids: [String]) -> String {
    ids.count <= 3 ? ids.joined(separator: ", ") : "\(ids.count) targets"
  }

  /// The sentence of a run without a measured reference.
  ///
  /// - Parameter ranks: the targets that do not fail too often, each with its rank, the best first; at least
  ///   one.
  private static func without(reference ranks: [(id: String, rank: Int)]) -> String {
    let best = ranks.filter { $0.rank == ranks[0].rank }.map(\.id)
    let names = names(best)
    if ranks.count == 1 { return "\(names) is the only usable target" }
    if best.count == ranks.count { return "no significant difference between the targets" }
    return best.count == 1
      ? "\(names) is the fastest" : "\(names) are the fastest, without a significant difference between them"
  }

  /// A difference with its interval, in milliseconds and without signs, such as `5.4 ms [5.0 5.8]`.
  private static func shift(_ comparison: Comparison, _ time: Milliseconds) -> String {
    let ends = [comparison.interval.lowerBound, comparison.interval.upperBound].map { abs($0) }.sorted()
    func text(_ value: Double) -> String { time.text(Int64(clamped: value.rounded())) }
    return "\(text(abs(comparison.shift))) ms [\(text(ends[0])) \(text(ends[1]))]"
  }
}
