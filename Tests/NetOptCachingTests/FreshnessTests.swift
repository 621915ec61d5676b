import NetOptCaching
import NetOptCore
import Testing

struct FreshnessTests {
  @Test func maxAgeWinsOverExpires() throws {
    let entry = try stored(["Cache-Control": "max-age=60", "Expires": date(-100), "Date": date(0)])
    #expect(try decision(on: entry, after: 59) == ("hit", "RFC 9111, section 5.2.2.1"))
    #expect(try decision(on: entry, after: 60) == ("fetch", "RFC 9111, section 4.2"))
  }

  @Test("s-maxage and CDN-Cache-Control do not apply to this private cache")
  func sharedCacheDirectives() throws {
    let entry = try stored(["Cache-Control": "s-maxage=3600, max-age=10"])
    #expect(try decision(on: entry, after: 11).word == "fetch")
    let cdn = try stored(["Cache-Control": "max-age=60", "CDN-Cache-Control": "no-store"])
    #expect(try decision(on: cdn).word == "hit")
  }

  @Test("the lifetime by Expires counts from Date")
  func expires() throws {
    let entry = try stored(["Expires": date(100), "Date": date(0)])
    #expect(try decision(on: entry, after: 99) == ("hit", "RFC 9111, section 5.3"))
    #expect(try decision(on: entry, after: 101).word == "fetch")
    // The clock of this server is an hour behind, and both dates are by that clock.
    let slow = try stored(["Expires": date(-3500), "Date": date(-3600), "ETag": "\"a\""])
    #expect(slow.terms.freshness.lifetime == 100_000)
  }

  @Test(
    "an invalid Expires is a date in the past",
    arguments: ["0", "-1", "", "soon", "Thu, 18 Aug 2050 2:01:18 GMT"])
  func invalidExpires(_ expires: String) throws {
    let entry = try stored(["Expires": expires, "Date": date(0), "Last-Modified": date(-100_000)])
    #expect(try decision(on: entry).word == "validate")
    #expect(entry.terms.freshness.isExplicit)
  }

  @Test("a response with two Expires fields has no lifetime")
  func twoExpires() throws {
    let entry = try stored(["Expires": date(100), "expires": date(100)])
    #expect(entry.terms.freshness.lifetime == 0)
  }

  @Test("the heuristic lifetime is a tenth of the time since Last-Modified, for some statuses")
  func heuristic() throws {
    let entry = try stored(["Last-Modified": date(-1000), "Date": date(0)])
    #expect(try decision(on: entry, after: 99) == ("hit", "RFC 9111, section 4.2.2"))
    #expect(try decision(on: entry, after: 101).word == "validate")
    for status in [201, 202, 302, 307, 403, 500, 502, 503, 504, 599] {
      let other = try stored(["Last-Modified": date(-1000), "Date": date(0)], status: status)
      #expect(other.terms.freshness.lifetime == 0)
    }
    // `public` allows a heuristic lifetime for any status.
    let marked = try stored(
      ["Last-Modified": date(-1000), "Date": date(0), "Cache-Control": "public"], status: 599)
    #expect(marked.terms.freshness.lifetime == 100_000)
    #expect(try stored(["Last-Modified": date(10), "Date": date(0)]).terms.freshness.lifetime == 0)
  }

  @Test(
    "the age is the first member of Age, and 0 if that is not a number",
    arguments: [
      ("30", 30), ("7200, 0", 7200), ("0, 7200", 0), ("abc", 0), ("-7200", 0), ("7200.0", 0), ("7200;a=b", 0),
      ("", 0), ("2147483649", 2_147_483_648), ("99999999999999999999", 2_147_483_648),
    ] as [(String, Int64)])
  func ageField(_ text: String, _ seconds: Int64) throws {
    #expect(try stored(["Age": text]).terms.age(at: start) == seconds * 1000)
  }

  @Test("the age includes the duration of the request and the time since Date")
  func age() throws {
    let delayed = try stored(["Age": "30", "Date": date(0)], took: 5000)
    #expect(delayed.terms.age(at: start + 10_000) == 45_000)
    let dated = try stored(["Date": date(-100)])
    #expect(dated.terms.age(at: start) == 100_000)
    // A `Date` in the future does not reduce the age.
    #expect(try stored(["Date": date(100)]).terms.age(at: start + 7000) == 7000)
    // A response received after the present time, because the clock was set back, has the maximum age.
    #expect(try stored([:]).terms.age(at: start - 1) == .max)
    #expect(try stored([:]).terms.age(at: start) == 0)
  }
}
