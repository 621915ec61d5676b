import NetOptCore
import Testing

@testable import NetOptRouting

@Suite struct LatencyQuantileTests {
  @Test func nothingIsSaidOfAFew() {
    var quantile = LatencyQuantile()
    for _ in 1..<LatencyQuantile.leastSamples { quantile.add(.milliseconds(10)) }
    #expect(quantile.value == nil)
    quantile.add(.milliseconds(10))
    #expect(quantile.value != nil)
  }

  @Test(arguments: [1, 16_000, 20_000, 1_000_000, 12_345_678, 999_999_999, 60_000_000_000, Int64.max])
  func theAnswerIsAtMostNinePercentOff(_ nanoseconds: Int64) throws {
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

  @Test(arguments: 1...20)
  func itIsThe95thPercentile(_ seed: UInt64) throws {
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

  @Test func whatWasLongAgoIsForgotten() throws {
    var quantile = LatencyQuantile()
    for _ in 0..<5000 { quantile.add(.milliseconds(10)) }
    for _ in 0..<100 { quantile.add(.milliseconds(200)) }
    #expect(try #require(quantile.value) > .milliseconds(150))
    for _ in 0..<5000 { quantile.add(.milliseconds(10)) }
    #expect(try #require(quantile.value) < .milliseconds(12))
  }
}
