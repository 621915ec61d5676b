import Testing

@testable import NetOptBench

@Suite struct MillisecondsTests {
  // Each argument has the smallest time and the time to format, both in microseconds, and the expected text
  // in milliseconds. The text has 0 to 3 decimals: as many as the smallest time needs for three digits.
  @Test(
    "times have the decimals that the smallest time needs for three digits",
    arguments: [
      (Int64(312), Int64(312), "0.312"), (9_999, 9_994, "9.99"), (9_999, 9_995, "10.00"),
      (24_149, 24_149, "24.1"),
      (24_149, 1_000_050, "1000.1"), (0, 0, "0.000"), (20_000, -24_149, "-24.1"), (20_000, -24_150, "-24.2"),
      (20_000, 24_150, "24.2"), (20_000, -49, "0.0"), (20_000, -50, "-0.1"), (312, -312, "-0.312"),
      (9_999, .min, "-9223372036854775.81"), (9_999, .max, "9223372036854775.81"),
    ])
  func decimals(smallest: Int64, value: Int64, text: String) {
    #expect(Milliseconds(smallest: smallest).text(value) == text)
  }

  @Test("small negative decimal numbers keep their sign")
  func negativeDecimals() {
    #expect(Milliseconds.decimal(-4, 1) == "-0.4")
    #expect(Milliseconds.decimal(-183, 1) == "-18.3")
  }
}
