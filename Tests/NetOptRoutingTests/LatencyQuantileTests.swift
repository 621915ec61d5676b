import NetOptCore
import Testing

@testable import NetOptRouting

@Suite struct LatencyQuantileTests {
  @Test("the quantile has no value with too few samples")
  func fewSamples() {
    var quantile = LatencyQuantile()
    for _ in 1..<LatencyQuantile.leastSamples { quantile.add(.milliseconds(10)) }
    #expect(quantile.value == nil)
    quantile.add(.milliseconds(10))
    #expect(quantile.value != nil)
  }

  /// The histogram counts all times below 2^14 ns in its first class and all times above 2^38 ns in its last
  /// class. For such times the error may be larger.
  @Test(
    "the quantile of equal samples is at most an eighth too high",
    arguments: [1, 16_000, 20_000, 1_000_000, 12_345_678, 999_999_999, 60_000_000_000, Int64.max])
  func accuracy(_ nanoseconds: Int64) throws {
    var quantile = LatencyQuantile()
    for _ in 0..<100 { quantile.add(.nanoseconds(nanoseconds)) }
    let value = try #require(quantile.value).nanoseconds
    if nanoseconds < 1 << 14 {
      #expect(value < 19_000)
    } else if nanoseconds < 1 << 37 {
      #expect(value > nanoseconds && value <= nanoseconds + nanoseconds / 8 + 1)
    } else {
      #expect(value >= 1 << 37)
    }
  }

  @Test("the quantile is the 95th percentile, at most 12.6 % too high", arguments: 1...20)
  func percentile(_ seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    var quantile = LatencyQuantile()
    var times: [Int64] = []
    for _ in 0..<(100 + random.below(800)) {
      let time = Int64(100_000 + random.below(50_000_000))
      times.append(time)
      quantile.add(.nanoseconds(time))
    }
    let exact = Double(times.sorted()[times.count - 1 - times.count / 20])
    let value = Double(try #require(quantile.value).nanoseconds)
    #expect(value >= exact && value <= exact * 1.126)
  }

  @Test("the quantile forgets old samples after 5,000 new ones")
  func forgetsOldSamples() throws {
    var quantile = LatencyQuantile()
    for _ in 0..<5000 { quantile.add(.milliseconds(10)) }
    for _ in 0..<100 { quantile.add(.milliseconds(200)) }
    #expect(try #require(quantile.value) > .milliseconds(150))
    for _ in 0..<5000 { quantile.add(.milliseconds(10)) }
    #expect(try #require(quantile.value) < .milliseconds(12))
  }
}
