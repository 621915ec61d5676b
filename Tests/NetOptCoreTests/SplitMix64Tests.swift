import NetOptCore
import Testing

@Suite struct SplitMix64Tests {
  @Test func givesThePublishedSequence() {
    var generator = SplitMix64(seed: 1_234_567)
    #expect(
      (0..<5).map { _ in generator.next() } == [
        6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423,
        4_593_380_528_125_082_431, 16_408_922_859_458_223_821,
      ])
  }

  @Test func numbersBelowABoundAreEquallyLikely() {
    var generator = SplitMix64(seed: 1)
    var counts = [Int](repeating: 0, count: 6)
    for _ in 0..<60_000 { counts[Int(generator.below(6))] += 1 }
    // Five standard deviations of a binomial of 60,000 and 1/6.
    #expect(counts.allSatisfy { abs($0 - 10_000) < 457 })
  }

  @Test func theOnlyNumberBelowOneIsZero() {
    var generator = SplitMix64(seed: 2)
    #expect(generator.below(1) == 0)
  }
}
