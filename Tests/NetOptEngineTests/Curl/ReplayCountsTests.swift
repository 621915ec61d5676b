import NetOptCore
import Testing

@testable import NetOptEngine

/// The limits on how often one leg may send a request again that came back to netopt unprocessed.
@Suite struct ReplayCountsTests {
  /// How often one leg may send a request again, by the fate with which the request came back. `unwritten`
  /// and `leftOut` share one limit.
  private static let most: [(fate: SentRequest.Fate, count: Int)] = [
    (.unknown, 0), (.refused, 3), (.overLimit, 32), (.unwritten, 10), (.leftOut, 10),
  ]

  /// Counts that a request came back from a leg. Returns whether the leg may send the request again.
  private func isAdded(_ fate: SentRequest.Fate, to counts: inout ReplayCounts, from leg: Int = 0) -> Bool {
    counts.add(fate, from: leg)
  }

  @Test("each fate has its own limit, and a return beyond the limit is not counted", arguments: most)
  func limits(_ fate: SentRequest.Fate, _ most: Int) {
    var counts = ReplayCounts()
    // A first return with the fate `unknown` is refused, but it records the leg. So `before` below differs
    // from `counts` only if the return beyond the limit is counted.
    #expect(!isAdded(.unknown, to: &counts))
    for _ in 0..<most { #expect(isAdded(fate, to: &counts)) }
    let before = counts
    #expect(!isAdded(fate, to: &counts))
    #expect(counts == before)
  }

  @Test("refused requests have their own limit, and unwritten requests share the limit of leftOut")
  func separateLimits() {
    var counts = ReplayCounts()
    for _ in 0..<ReplayCounts.mostUnknownLimits { _ = counts.add(.overLimit, from: 0) }
    for _ in 0..<ReplayCounts.mostEnds { _ = counts.add(.leftOut, from: 0) }
    #expect(isAdded(.refused, to: &counts))
    #expect(!isAdded(.unwritten, to: &counts))
  }

  @Test("each leg has its own limit of refused requests")
  func legs() {
    var counts = ReplayCounts()
    while counts.add(.refused, from: 0) {}
    #expect(isAdded(.unwritten, to: &counts))
    for _ in 0..<ReplayCounts.mostRefusals { #expect(isAdded(.refused, to: &counts, from: 1)) }
    #expect(!isAdded(.refused, to: &counts, from: 1))
  }

  @Test(
    "in any order of fates, one leg may send a request again exactly 45 times",
    arguments: 1...20 as ClosedRange<UInt64>)
  func bounded(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var counts = ReplayCounts()
    var count = 0
    for _ in 0..<2000
    where counts.add(Self.most.randomElement(using: &random)?.fate ?? .unknown, from: 0) { count += 1 }
    #expect(count == ReplayCounts.mostRefusals + ReplayCounts.mostUnknownLimits + ReplayCounts.mostEnds)
  }
}
