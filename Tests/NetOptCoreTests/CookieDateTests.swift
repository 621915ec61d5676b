import NetOptCore
import TestTools
import Testing

/// `CivilTime(cookie:)` (RFC 6265, section 5.1.1).
@Suite struct CookieDateTests {
  private static let dates: [(String, Int64?)] = [
    ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Thu, 01-Jan-70 00:00:00 GMT", 0),
    ("Wed, 31-Dec-69 23:59:59 GMT", 3_155_759_999), ("Fri, 31-Dec-99 23:59:59 GMT", 946_684_799),
    ("01-Jan-00 00:00:00", 946_684_800), ("Jeu, 01 janvier 1970 0:0:1 +0900", 1),
    ("1 January 1970 00:00:00", 0), ("1970 Jan 1st 00:00:00", 0), ("00:00:00 1 1970 JANUARY", 0),
    ("(Thu) 1/Jan/1970;00:00:00,GMT", 0), ("Sun Nov  6 08:49:37 1994", 784_111_777),
    ("06 Nov 1994 08:49:37.5 GMT", 784_111_777), ("29 Feb 2000 00:00:00", 951_782_400),
    ("29 Feb 1900 00:00:00", nil), ("31 Feb 2027 00:00:00", nil), ("0 Jan 1970 00:00:00", nil),
    ("32 Jan 1970 00:00:00", nil), ("1 Jan 1600 00:00:00", nil), ("1 Jan 1601 00:00:00", -11_644_473_600),
    ("1 Jan 1970 24:00:00", nil), ("1 Jan 1970 00:60:00", nil), ("1 Jan 1970 00:00:60", nil),
    ("1 Jan 1970", nil), ("1 Jan 00:00:00", nil), ("Jan 1970 00:00:00", nil), ("1 1970 00:00:00", nil),
    ("1 Jan 1970 000:00:00", nil), ("1 Jan 19700 00:00:00", nil), ("123 Jan 1970 00:00:00", nil),
    ("", nil), ("soon", nil), ("::::", nil), ("99999999999999999999999 Jan 1970 00:00:00", nil),
  ]

  @Test("dates in many forms", arguments: dates)
  func forms(_ text: String, _ seconds: Int64?) {
    #expect(CivilTime(cookie: text)?.seconds == seconds)
  }

  /// Prints random times with their dates, as Python's libraries write them.
  private static let program = """
    import datetime, email.utils, http.cookiejar, random, sys
    random.seed(7)
    for _ in range(600):
        year = random.choice([1970, 1999, 2000, 2069, random.randrange(1970, 2070)])
        start = datetime.datetime(year, 1, 1, tzinfo=datetime.timezone.utc)
        time = start + datetime.timedelta(seconds=random.randrange(365 * 86400))
        seconds = int(time.timestamp())
        for text in (email.utils.format_datetime(time, usegmt=True), time.strftime("%A, %d-%b-%y %H:%M:%S GMT"),
                     time.ctime(), http.cookiejar.time2netscape(seconds)):
            print(seconds, text, sep="\\t")
    """

  @Test("the dates that Python writes")
  func peers() async throws {
    let lines = try await Python.output(of: Self.program, on: [])
    try #require(lines.count == 2400)
    for line in lines {
      let parts = line.split(separator: "\t")
      #expect(CivilTime(cookie: parts[1])?.seconds == Int64(parts[0]), "\(line)")
    }
  }

  @Test("no text makes the parser fail")
  func anyText() {
    let parts = [
      "1", "70", "1970", "99999", "Jan", "jän", ":", "00:00:00", "9:9:9x", " ", "-", ",", "\0", "😀", "GMT",
    ]
    var random = SplitMix64(seed: 5)
    for _ in 0..<20_000 {
      let text = (0..<random.below(9)).map { _ in random.element(of: parts) }.joined()
      guard let time = CivilTime(cookie: text) else { continue }
      #expect(CivilTime(seconds: time.seconds) == time, "\(text)")
    }
  }
}
