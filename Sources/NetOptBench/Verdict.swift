/// What a run says in one sentence.
struct Verdict {
  /// The sentence.
  let text: String

  /// `nil` when no target has a p50, or there is only one.
  init?(_ report: BenchReport) {
    let ranks = report.ranks
    guard let best = ranks.first?.target, ranks.count > 1, let median = best.median(report.rankingBlock)
    else {
      return nil
    }
    let time = Milliseconds(smallest: median)
    guard let reference = report.reference, reference.median(report.rankingBlock) != nil else {
      text = Self.without(reference: ranks.map { ($0.target.target.id, $0.rank) })
      return
    }
    let name = reference.target.id
    let others = ranks.filter { $0.target.target != reference.target }.map(\.target)
    let comparisons = others.compactMap { report.comparison(of: $0.target.id) }
    let faster = comparisons.filter { $0.isSignificant && $0.shift < 0 }
    let tests = "Holm, \(comparisons.count) test\(comparisons.count == 1 ? "" : "s")"
    if let most = others.lazy.compactMap({ target in faster.first { $0.a == target.target.id } }).first {
      // The fastest by p50 of those that are told apart from the reference.
      let isDirect = reference.target.kind == .dns
      text =
        "\(isDirect ? "direct" : most.a) beats \(name) by \(Self.shift(most, time)) at p50 "
        + "(\(PValue.text(most.adjusted)), \(tests))"
    } else if !comparisons.isEmpty, comparisons.allSatisfy({ $0.isSignificant && $0.shift > 0 }) {
      let least = comparisons[0]
      text =
        "\(name) beats \(comparisons.count == 1 ? least.a : "all others") by \(Self.shift(least, time)) at p50 or more "
        + "(\(PValue.text(least.adjusted)), \(tests))"
    } else {
      text = "no target beats \(name): nothing tells it apart from the best of them (\(tests))"
    }
  }

  private static func without(reference ranks: [(id: String, rank: Int)]) -> String {
    let best = ranks.filter { $0.rank == 1 }.map(\.id)
    let names = best.count <= 3 ? best.joined(separator: ", ") : "\(best.count) targets"
    if best.count == ranks.count { return "nothing tells the targets apart" }
    return best.count == 1
      ? "\(names) is the fastest" : "\(names) are the fastest, and nothing tells them apart"
  }

  /// `5.4 ms [5.0 5.8]`, without the sign.
  private static func shift(_ comparison: Comparison, _ time: Milliseconds) -> String {
    let ends = [comparison.interval.lowerBound, comparison.interval.upperBound].map { abs($0) }.sorted()
    func text(_ value: Double) -> String { time.text(Int64(value.rounded())) }
    return "\(text(abs(comparison.shift))) ms [\(text(ends[0])) \(text(ends[1]))]"
  }
}
