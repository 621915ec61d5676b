import NetOptCore
import Testing

@testable import NetOptEngine

@Suite struct CertificateSummaryTests {
  @Test(
    "a date in OpenSSL's format is parsed",
    arguments: [
      ("Nov 21 19:00:00 2026 GMT", "2026-11-21T19:00:00Z"),
      ("Feb  9 01:02:03 2048 GMT", "2048-02-09T01:02:03Z"),
      ("Feb 29 23:59:59 2028 GMT", "2028-02-29T23:59:59Z"),
      ("Dec 31 23:59:59 9999 GMT", "9999-12-31T23:59:59Z"),
      ("Jan  1 00:00:00 1950 GMT", "1950-01-01T00:00:00Z"),
    ])
  func dates(_ text: String, _ moment: String) {
    #expect(CertificateSummary.date(text).map { CivilTime(seconds: $0).rfc3339 } == moment)
  }

  @Test(
    "a text in another format, or a date that does not exist, is not parsed",
    arguments: [
      "", " GMT", "Bad time value", "Nov 21 19:00:00 2026", "Nov 21 19:00:00.5 2026 GMT",
      "Nov 31 19:00:00 2026 GMT",
      "2026-11-21 19:00:00 GMT", "Now 21 19:00:00 2026 GMT",
    ])
  func others(_ text: String) {
    #expect(CertificateSummary.date(text) == nil)
  }
}
