import FoundationEssentials
import Testing

@testable import NetOptRouting

@Suite struct TimestampTests {
  @Test(
    "an RFC 3339 time is read in seconds since 1970",
    arguments: [
      ("1970-01-01T00:00:00Z", 0.0),
      ("2026-11-20T00:00:00Z", 1_795_132_800),
      ("2026-11-20t00:00:00z", 1_795_132_800),
      ("2026-11-20T08:00:00+08:00", 1_795_132_800),
      ("2026-11-19T18:30:00-05:30", 1_795_132_800),
      ("2026-11-20T00:00:00.25Z", 1_795_132_800.25),
      ("2026-11-20T00:00:00.2500000001234Z", 1_795_132_800.25),
      ("2000-02-29T12:34:56Z", 951_827_696),
      ("2400-02-29T00:00:00Z", 13_574_563_200),
      ("1900-03-01T00:00:00Z", -2_203_891_200),
      ("0001-01-01T00:00:00Z", -62_135_596_800),
      ("2016-12-31T23:59:60Z", 1_483_228_800),
    ])
  func reads(_ text: String, _ seconds: Double) {
    #expect(Date(rfc3339: text)?.timeIntervalSince1970 == seconds)
  }

  @Test(
    "text that is no RFC 3339 time is refused",
    arguments: [
      "", "2026", "2026-11-20", "2026-11-20T00:00:00", "2026-11-20 00:00:00Z", "2026-11-20T00:00Z",
      "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-02-29T00:00:00Z", "1900-02-29T00:00:00Z",
      "2026-04-31T00:00:00Z", "2026-11-00T00:00:00Z", "2026-11-20T24:00:00Z", "2026-11-20T00:60:00Z",
      "2026-11-20T00:00:61Z", "2026-11-20T00:00:00.Z", "2026-11-20T00:00:00+24:00",
      "2026-11-20T00:00:00+0800",
      "2026-11-20T00:00:00Z ", " 2026-11-20T00:00:00Z", "2026-11-20T00:00:00ZZ", "26-11-20T00:00:00Z",
      "-026-11-20T00:00:00Z", "+026-11-20T00:00:00Z", "２０２６-11-20T00:00:00Z", "2026-11-20T00:00:00Z\u{0}",
    ])
  func refuses(_ text: String) {
    #expect(Date(rfc3339: text) == nil)
  }

  @Test("the valid dates of 400 years are 146,097 successive days")
  func fourCenturies() {
    var seconds = -62_135_596_800.0
    var previous = seconds - 86_400
    var days = 0
    for year in 1...400 {
      for month in 1...12 {
        for day in 1...31 {
          let digits = [(year, 4), (month, 2), (day, 2)].map { number, width in
            String(repeating: "0", count: width - String(number).count) + String(number)
          }
          guard let date = Date(rfc3339: digits.joined(separator: "-") + "T00:00:00Z") else { continue }
          days += 1
          seconds = date.timeIntervalSince1970
          #expect(seconds - previous == 86_400)
          previous = seconds
        }
      }
    }
    #expect(days == 146_097)
  }
}
