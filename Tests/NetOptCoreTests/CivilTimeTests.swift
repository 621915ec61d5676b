import NetOptCore
import Testing

struct CivilTimeTests {
  @Test(
    "the three date forms of HTTP parse, without regard to case",
    arguments: [
      ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Sun Nov  6 08:49:37 1994", 784_111_777),
      ("Friday, 20-Nov-26 00:00:00 GMT", 1_795_132_800), ("Fri, 20 Nov 2026 00:00:00 GMT", 1_795_132_800),
      ("FRI, 20 NOV 2026 00:00:00 gMT", 1_795_132_800), ("Fri Nov 20 00:00:00 2026", 1_795_132_800),
    ])
  func httpDates(_ text: String, _ seconds: Int64) {
    #expect(CivilTime(http: text)?.seconds == seconds)
  }

  @Test(
    "a text in no form of HTTP or with an impossible date does not parse",
    arguments: [
      "", "soon", "0", "-1", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 CET",
      "Sun, 31 Feb 2026 08:49:37 GMT",
      "Sun, 06 XYZ 1994 08:49:37 GMT", "Sun, 06 Nov 1994 25:49:37 GMT", "a b c d e f", "1994-11-06T08:49:37Z",
      "Sun, -6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 99999 08:49:37 GMT", "Sun, 06 Nov 94 08:49:37 GMT",
      "Sun 06 Nov 1994 08:49:37 GMT", "Sun, 06  Nov  1994 08:49:37 GMT", "Sun, 06-Nov-1994 08:49:37 GMT",
      "Sun, 06 Nov 1994 08.49.37 GMT", "Sun, 06 Nov 1994 8:49:37 GMT", "Sun,  6 Nov 1994 08:49:37 GMT",
      "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
    ])
  func invalidDates(_ text: String) {
    #expect(CivilTime(http: text) == nil)
  }

  /// The check runs in a child process, because a trap would end the test process.
  @Test(
    "every 64-bit second converts to a valid civil time and back",
    arguments: [.min, .min + 1, -1, 0, 1, 253_402_300_800, .max - 1, .max] as [Int64])
  func everySecond(_ seconds: Int64) async {
    await #expect(processExitsWith: .success) { [seconds] in
      let time = CivilTime(seconds: seconds)
      #expect(time.seconds == seconds)
      #expect((1...12).contains(time.month) && (1...31).contains(time.day) && (0...23).contains(time.hour))
      for text in [time.http, time.basic, time.rfc3339] { #expect(!text.isEmpty) }
    }
  }

  @Test("a two-digit year is at most 50 years ahead, and the day of the week can decide the century")
  func twoDigitYears() {
    let present = CivilTime(rfc3339: "2026-11-21T00:00:00Z")?.seconds
    #expect(CivilTime(http: "Sunday, 06-Nov-94 08:49:37 GMT", near: present)?.year == 1994)
    #expect(CivilTime(http: "Thursday, 18-Aug-50 02:01:18 GMT", near: present)?.year == 2050)
    #expect(CivilTime(http: "Thursday, 18-Aug-76 02:01:18 GMT", near: present)?.year == 2076)
    #expect(CivilTime(http: "Thursday, 18-Aug-77 02:01:18 GMT", near: present)?.year == 1977)
    // If only one of the two possible years has the given day of the week, that year is meant.
    #expect(CivilTime(http: "Thu, 01-Jan-70 00:00:00 GMT", near: present)?.seconds == 0)
    #expect(CivilTime(http: "Wed, 01-Jan-70 00:00:00 GMT", near: present)?.year == 2070)
    #expect(CivilTime(http: "Moonday, 01-Jan-70 00:00:00 GMT", near: present)?.year == 2070)
  }

  @Test("a civil time prints the preferred date form of HTTP")
  func printedDate() {
    #expect(CivilTime(seconds: 784_111_777).http == "Sun, 06 Nov 1994 08:49:37 GMT")
  }

  /// A text, its time in seconds since 1970, and whether `CivilTime(rfc3339:)` parses the text.
  @Test(
    "a civil time parses one form of RFC 3339, and seconds(rfc3339:) parses all forms",
    arguments: [
      ("2026-11-20T00:00:00Z", 1_795_132_800, true), ("2016-12-31T23:59:60Z", 1_483_228_800, true),
      ("2026-11-20t00:00:00Z", 1_795_132_800, false), ("2026-11-20T00:00:00z", 1_795_132_800, false),
      ("2026-11-20T00:00:00.5Z", 1_795_132_800.5, false), ("2026-11-20T00:00:00+00:00", 1_795_132_800, false),
      ("2026-11-20T08:00:00+08:00", 1_795_132_800, false), ("0000-01-01T00:00:00Z", -62_167_219_200, true),
    ])
  func timestamps(_ text: String, _ seconds: Double, _ isStrict: Bool) {
    #expect(CivilTime.seconds(rfc3339: text) == seconds)
    let time = CivilTime(rfc3339: text)
    #expect((time != nil) == isStrict)
    if let time {
      #expect(Double(time.seconds) == seconds)
      #expect(time.rfc3339 == text)
    }
  }

  @Test(
    "a text that is not an RFC 3339 timestamp does not parse",
    arguments: [
      "", "2026-11-20T00:00:00", "2026-11-20 00:00:00Z", "2026-02-29T00:00:00Z", "2026-11-20T24:00:00Z",
      "2026-11-20T00:00:00Z ", "20261120T000000Z", "２０２６-11-20T00:00:00Z",
    ])
  func invalidTimestamps(_ text: String) {
    #expect(CivilTime(rfc3339: text) == nil)
    #expect(CivilTime.seconds(rfc3339: text) == nil)
  }
}
