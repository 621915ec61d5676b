import NetOptCore
import Testing

@testable import NetOptEngine

/// The limits on how often a request may come back unprocessed from one leg.
@Suite struct ReturnsTests {
  private static let most: [(fate: SentRequest.Fate, count: Int)] = [
    (.unknown, 0), (.refused, 3), (.overLimit, 32), (.unwritten, 10), (.leftOut, 10),
  ]

  private func isAdded(_ fate: SentRequest.Fate, to returns: inout Returns, from leg: Int = 0) -> Bool {
    returns.add(fate, from: leg)
  }

  @Test("each fate has its own limit, and a return beyond the limit is not counted", arguments: most)
  func limits(_ fate: SentRequest.Fate, _ most: Int) {
    var returns = Returns()
    // The first return records the leg.
    #expect(!isAdded(.unknown, to: &returns))
    for _ in 0..<most { #expect(isAdded(fate, to: &returns)) }
    let before = returns
    #expect(!isAdded(fate, to: &returns))
    #expect(returns == before)
  }

  @Test("refused requests have their own limit, and unwritten requests share the limit of leftOut")
  func separateLimits() {
    var returns = Returns()
    for _ in 0..<Returns.mostUnknownLimits { _ = returns.add(.overLimit, from: 0) }
    for _ in 0..<Returns.mostEnds { _ = returns.add(.leftOut, from: 0) }
    #expect(isAdded(.refused, to: &returns))
    #expect(!isAdded(.unwritten, to: &returns))
  }

  @Test("each leg has its own limit of refused requests")
  func legs() {
    var returns = Returns()
    while returns.add(.refused, from: 0) {}
    #expect(isAdded(.unwritten, to: &returns))
    for _ in 0..<Returns.mostRefusals { #expect(isAdded(.refused, to: &returns, from: 1)) }
    #expect(!isAdded(.refused, to: &returns, from: 1))
  }

  @Test(
    "in any order of fates, one leg may send a request again exactly 45 times",
    arguments: 1...20 as ClosedRange<UInt64>)
  func bounded(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var returns = Returns()
    var count = 0
    for _ in 0..<2000
    where returns.add(Self.most.randomElement(using: &random)?.fate ?? .unknown, from: 0) { count += 1 }
    #expect(count == Returns.mostRefusals + Returns.mostUnknownLimits + Returns.mostEnds)
  }
}
