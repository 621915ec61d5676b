import NetOptCore
import Testing

@Suite struct SplitMix64Tests {
  @Test("the generator gives the published sequence")
  func publishedSequence() {
    var generator = SplitMix64(seed: 1_234_567)
    #expect(
      (0..<5).map { _ in generator.next() } == [
        6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423,
        4_593_380_528_125_082_431, 16_408_922_859_458_223_821,
      ])
  }

  @Test("below gives all numbers with equal probability")
  func equalProbability() {
    var generator = SplitMix64(seed: 1)
    var counts = [Int](repeating: 0, count: 6)
    for _ in 0..<60_000 { counts[Int(generator.below(6))] += 1 }
    // Five standard deviations of the binomial distribution with n = 60,000 and p = 1/6.
    #expect(counts.allSatisfy { abs($0 - 10_000) < 457 })
  }

  @Test("below(1) gives 0")
  func belowOne() {
    var generator = SplitMix64(seed: 2)
    #expect(generator.below(1) == 0)
  }
}
