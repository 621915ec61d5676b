import Testing

@testable import NetOptBench

@Suite struct HDRHistogramTests {
  @Test("a histogram keeps three digits of a value")
  func precision() throws {
    for value: Int64 in [0, 1, 999, 2047, 2048, 4095, 4096, 123_456, 59_999_999] {
      var histogram = HDRHistogram()
      histogram.record(value)
      let bucket = try #require(histogram.buckets.first).values
      #expect(bucket.contains(value))
      #expect(bucket.count == 1 || Double(bucket.count) <= Double(value) / 1000)
    }
  }

  @Test("values outside the range count at the ends of the range")
  func outsideRange() {
    var histogram = HDRHistogram()
    histogram.record(.max)
    histogram.record(-1)
    #expect(histogram.total == 2)
    #expect(histogram.value(atRank: 1) == 0)
    #expect(histogram.value(atRank: 2)! >= HDRHistogram.highest)
    #expect(histogram.value(atRank: 3) == nil)
  }

  @Test("the sum of two histograms equals the histogram of all values")
  func sum() {
    var (first, second, both) = (HDRHistogram(), HDRHistogram(), HDRHistogram())
    for value in stride(from: Int64(1), to: 1_000_000, by: 997) {
      if value % 2 == 0 { first.record(value) } else { second.record(value) }
      both.record(value)
    }
    first.add(second)
    #expect(first == both)
  }

  @Test("an encoded histogram decodes to the same histogram")
  func encoding() throws {
    var histogram = HDRHistogram()
    #expect(try HDRHistogram(encoded: histogram.encoded) == histogram)
    for value in [0, 5, 5, 5, 70_000, 59_000_000] as [Int64] { histogram.record(value, count: 1 << 40) }
    #expect(try HDRHistogram(encoded: histogram.encoded) == histogram)
  }

  @Test("decoding refuses a text that is not an encoded histogram")
  func invalidTexts() {
    var histogram = HDRHistogram()
    histogram.record(1000)
    let good = histogram.encoded
    for text in ["", "x", "AAAA", String(good.dropLast(8)), "HISTFAAAAAA=", good.replacing("H", with: "I")] {
      #expect(throws: HDRHistogram.Fault.self) { try HDRHistogram(encoded: text) }
    }
  }

  /// Replaces each character of an encoded histogram in turn. Decoding accepts or refuses the text, and does
  /// not trap.
  @Test("decoding does not trap on an encoded histogram with one changed character")
  func changedCharacters() {
    var histogram = HDRHistogram()
    for value in stride(from: Int64(1), to: 60_000, by: 777) { histogram.record(value) }
    let good = Array(histogram.encoded.utf8)
    for index in good.indices {
      for letter in "Az9+".utf8 {
        var broken = good
        broken[index] = letter
        _ = try? HDRHistogram(encoded: String(decoding: broken, as: UTF8.self))
      }
    }
  }

  /// A large value, which takes few bytes in the encoding, needs no memory for all smaller values. The order
  /// of the values has no effect.
  @Test("a histogram stores no counters for smaller values, and ignores the order of values")
  func storage() {
    var histogram = HDRHistogram()
    histogram.record(HDRHistogram.highest)
    #expect(histogram.counters == 1)
    histogram.record(1, count: 0)
    #expect(histogram.counters == 1)
    var (up, down) = (HDRHistogram(), HDRHistogram())
    for value in stride(from: Int64(100), to: 100_000, by: 333) { up.record(value) }
    for value in stride(from: Int64(100), to: 100_000, by: 333).reversed() { down.record(value) }
    #expect(up == down && up.value(atRank: 1) == 100 && up.encoded == down.encoded)
  }
}
