import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// Tests of `Duration.shown`, the text of a duration in messages.
@Suite struct DurationShownTests {
  @Test(
    "durations below 1000 s print with three digits at most, and negative ones as 0 s",
    arguments: [
      (Duration.zero, "0 s"), (.seconds(-1), "0 s"), (.nanoseconds(1), "0.001 ms"),
      (.microseconds(400), "0.4 ms"),
      (.milliseconds(8), "8 ms"), (.microseconds(9999), "10 ms"), (.microseconds(12_340), "12.3 ms"),
      (.milliseconds(999), "999 ms"), (.microseconds(999_600), "1 s"), (.milliseconds(1250), "1.25 s"),
      (.milliseconds(10_400), "10.4 s"), (.seconds(90), "90 s"), (.seconds(4_294_967_295), "4294967295 s"),
    ])
  func threeDigits(_ duration: Duration, _ text: String) {
    #expect(duration.shown == text)
  }

  @Test(
    "the shown duration is off by at most half of the third digit", arguments: 1...20 as ClosedRange<UInt64>)
  func precision(_ seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    for _ in 0..<200 {
      let nanoseconds = Int64.random(
        in: 10_000...(1 << Int64.random(in: 14...40, using: &random)), using: &random)
      let words = Duration.nanoseconds(nanoseconds).shown.split(separator: " ")
      let number = try #require(Double(words[0]))
      let shown = number * (words[1] == "s" ? 1e9 : 1e6)
      // Three digits allow an error of 0.5 %. The smallest step is 0.001 ms, which allows an error of 500 ns.
      #expect(abs(shown - Double(nanoseconds)) <= max(0.0051 * Double(nanoseconds), 501))
    }
  }

  @Test("extreme durations have a text")
  func extremes() {
    for duration in ExtremeNumbers.durations { #expect(!duration.shown.isEmpty) }
  }
}
