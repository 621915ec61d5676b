import NetOptCore
import TestTools
import Testing

@testable import NetOpt

/// What cookies a client keeps and sends back (RFC 6265).
@Suite struct CookieRulesTests {
  private static let now: Int64 = 1_800_000_000

  /// The `Cookie` field of a request after a response, in a jar of its own.
  private func field(
    after cookies: String..., from url: String = "https://www.shop.test/basket/list",
    isProtected: Bool = true,
    for next: String, safely nextIsProtected: Bool = true, later: Int64 = 0
  ) throws -> String? {
    let jar = CookieJar()
    jar.store(cookies, from: try HTTPURL(url), isProtected: isProtected, at: Self.now)
    return jar.field(for: try HTTPURL(next), isProtected: nextIsProtected, at: Self.now + later)
  }

  private static let texts: [(String, String?)] = [
    ("a=b", "a=b"), ("  a =\tb c ; Path=/", "a=b c"), ("a=b=c", "a=b=c"), ("a=", "a="),
    ("a=\"b\"", "a=\"b\""),
    ("b", "b"), ("=b", "b"), ("ä=ö", "ä=ö"), ("a=b,c", "a=b,c"), ("", nil), ("=", nil), (" ; Path=/", nil),
    ("a\u{1}=b", nil), ("a=b\u{7f}", nil), ("a=b;\u{0}", nil),
  ]

  @Test("name and value are read as browsers read them", arguments: texts)
  func pairs(_ text: String, _ expected: String?) throws {
    #expect(try field(after: text, for: "https://www.shop.test/basket/") == expected)
  }

  @Test("name and value have at most 4096 bytes")
  func size() throws {
    let name = String(repeating: "n", count: 96)
    for (count, isStored) in [(4000, true), (4001, false)] {
      let text = name + "=" + String(repeating: "v", count: count)
      #expect(try field(after: text, for: "https://www.shop.test/basket/") == (isStored ? text : nil))
    }
  }

  private static let domainCases: [(String, String, Bool)] = [
    ("", "www.shop.test", true), ("", "shop.test", false), ("", "a.www.shop.test", false),
    ("Domain=shop.test", "www.shop.test", true), ("Domain=.SHOP.test", "shop.test", true),
    ("Domain=shop.test", "a.b.shop.test", true), ("Domain=shop.test", "bookshop.test", false),
    ("Domain=www.shop.test", "a.www.shop.test", true), ("Domain=www.shop.test", "shop.test", false),
    ("Domain=", "www.shop.test", true), ("Domain=", "a.www.shop.test", false),
    ("Domain=other.test; Domain=", "www.shop.test", true),
    // Not a domain of the host, and a domain of a single label.
    ("Domain=other.test", "www.shop.test", false), ("Domain=a.www.shop.test", "www.shop.test", false),
    ("Domain=op.test", "www.shop.test", false), ("Domain=test", "www.shop.test", false),
    ("Domain=..shop.test", "www.shop.test", false), ("Domain=shop.test.", "www.shop.test", false),
  ]

  @Test("a cookie goes to its host, or to all hosts of its domain", arguments: domainCases)
  func domains(_ attribute: String, _ host: String, _ isSent: Bool) throws {
    let text = try field(after: "a=b; Path=/; \(attribute)", for: "https://\(host)/")
    #expect(text == (isSent ? "a=b" : nil))
  }

  @Test("a cookie of an IP address goes to no other")
  func addresses() throws {
    for (attribute, isSent) in [("", true), ("Domain=192.0.2.1", true), ("Domain=2.1", false)] {
      let text = try field(
        after: "a=b; \(attribute)", from: "https://192.0.2.1/", for: "https://192.0.2.1/")
      #expect(text == (isSent ? "a=b" : nil), "\(attribute)")
      #expect(
        try field(after: "a=b; \(attribute)", from: "https://192.0.2.1/", for: "https://92.0.2.1/") == nil)
    }
  }

  private static let pathCases: [(String, String, Bool)] = [
    ("", "/basket", true), ("", "/basket/", true), ("", "/basket/list", true), ("", "/basketball", false),
    ("", "/", false), ("Path=/", "/", true), ("Path=/a", "/a?q", true), ("Path=/a", "/a/b", true),
    ("Path=/a", "/ab", false), ("Path=/a/", "/a", false), ("Path=/a/", "/a/b", true),
    ("Path=a", "/basket/", true), ("Path=", "/", false), ("Path=/x; path=/", "/", true),
    ("Path=/" + String(repeating: "p", count: 1024), "/basket", true),
  ]

  @Test("a cookie goes to its path and to the paths below", arguments: pathCases)
  func paths(_ attribute: String, _ path: String, _ isSent: Bool) throws {
    let text = try field(after: "a=b; \(attribute)", for: "https://www.shop.test\(path)")
    #expect(text == (isSent ? "a=b" : nil))
  }

  private static let endCases: [(String, Int64, Bool)] = [
    ("", Int64.max / 2, true), ("Max-Age=10", 9, true), ("Max-Age=10", 10, false), ("Max-Age=0", 0, false),
    ("Max-Age=-9", 0, false), ("Max-Age=9x", 99, true), ("Max-Age=", 99, true), ("Max-Age=+9", 99, true),
    ("Max-Age=-", 99, true),
    ("Max-Age=99999999999999999999", 400 * 86_400 - 1, true),
    ("Max-Age=99999999999999999999", 400 * 86_400, false),
    ("Expires=Fri, 15 Jan 2027 08:00:10 GMT", 9, true),
    ("Expires=Fri, 15 Jan 2027 08:00:10 GMT", 10, false),
    ("expires=Friday, 15-Jan-27 08:00:10 GMT", 9, true),
    ("Expires=Thu, 01 Jan 1970 00:00:00 GMT", 0, false),
    ("Expires=Thu, 01-Jan-70 00:00:00 GMT", 0, false),
    ("Expires=soon", 99, true), ("Expires=Fri, 15 Jan 2129 08:00:10 GMT", 400 * 86_400, false),
    ("Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=9", 8, true),
    ("Max-Age=9; Expires=Thu, 01 Jan 1970 00:00:00 GMT", 8, true),
    ("Max-Age=9; Max-Age=20", 15, true),
  ]

  @Test("a cookie ends when the server says so, and after 400 days", arguments: endCases)
  func ends(_ attribute: String, _ later: Int64, _ isSent: Bool) throws {
    let text = try field(after: "a=b; \(attribute)", for: "https://www.shop.test/basket/", later: later)
    #expect(text == (isSent ? "a=b" : nil))
  }

  @Test("a cookie replaces the one with the same name, domain and path, and keeps its place")
  func replacement() throws {
    let url = "https://www.shop.test/"
    #expect(try field(after: "a=1", "b=2", "a=3", from: url, for: url) == "a=3; b=2")
    #expect(try field(after: "a=1", "A=2", from: url, for: url) == "a=1; A=2")
    #expect(try field(after: "a=1", "a=2; Domain=shop.test", from: url, for: url) == "a=1; a=2")
    #expect(try field(after: "a=1", "a=2; Path=/x", from: url, for: url + "x/y") == "a=2; a=1")
    #expect(try field(after: "a=1", "b=2", "a=; Max-Age=0", from: url, for: url) == "b=2")
    // Deleted and set again, a cookie is new.
    #expect(try field(after: "a=1", "b=2", "a=; Max-Age=0", "a=3", from: url, for: url) == "b=2; a=3")
  }

  @Test("a cookie for protected requests neither comes nor goes without protection, and is not hidden")
  func security() throws {
    let (secure, plain) = ("https://www.shop.test/", "http://www.shop.test/")
    #expect(try field(after: "a=1; Secure", from: secure, for: secure) == "a=1")
    #expect(try field(after: "a=1; Secure", from: secure, for: plain, safely: false) == nil)
    #expect(try field(after: "a=1; secure=x", from: plain, isProtected: false, for: secure) == nil)
    #expect(try field(after: "a=1", from: secure, for: plain, safely: false) == "a=1")
    let jar = CookieJar()
    let url = try HTTPURL(secure + "x")
    jar.store(["a=1; Secure; Path=/x"], from: url, isProtected: true, at: Self.now)
    for (text, isStored) in [
      ("a=2; Path=/x", false), ("a=2; Path=/x/y", false), ("a=2; Path=/x; Domain=shop.test", false),
      ("a=; Max-Age=0; Path=/x", false), ("a=2; Path=/", true), ("b=2; Path=/x", true),
    ] {
      jar.store([text], from: url, isProtected: false, at: Self.now)
      let field = jar.field(for: try HTTPURL(secure + "x/y"), isProtected: true, at: Self.now)
      #expect(field?.hasPrefix("a=1") == true, "\(text): \(field ?? "")")
      #expect((field?.split(separator: ";").count == 1) != isStored || text.hasPrefix("b"), "\(text)")
    }
    // A cookie that has ended hides nothing.
    let below = try HTTPURL("https://b.www.shop.test/")
    jar.store(["c=1; Secure; Max-Age=1"], from: below, isProtected: true, at: Self.now)
    jar.store(["c=2; Domain=shop.test; Path=/y"], from: url, isProtected: false, at: Self.now + 1)
    #expect(
      jar.field(for: try HTTPURL(plain + "y"), isProtected: false, at: Self.now + 1)?.contains("c=2") == true)
    jar.store(["a=3; Path=/x"], from: url, isProtected: true, at: Self.now)
    #expect(jar.field(for: url, isProtected: false, at: Self.now)?.hasPrefix("a=3") == true)
  }

  private static let promises: [(String, Bool)] = [
    ("__Secure-a=1; Secure", true), ("__secure-a=1", false), ("__Host-a=1; Secure; Path=/", true),
    ("__Host-a=1; Path=/", false), ("__HOST-a=1; Secure", false), ("__Host-a=1; Secure; Path=/b", false),
    ("__Host-a=1; Secure; Path=/; Domain=shop.test", false), ("__Secure-a", false),
    ("=__Host-a; Secure; Path=/", false),
  ]

  @Test("a name with a prefix keeps the promise of the prefix", arguments: promises)
  func prefixes(_ text: String, _ isStored: Bool) throws {
    let url = "https://www.shop.test/b"
    #expect((try field(after: text, from: url, for: url) != nil) == isStored)
  }

  @Test("a domain has at most 50 cookies; the one that was used longest ago goes first")
  func limits() throws {
    let jar = CookieJar()
    let url = try HTTPURL("https://www.shop.test/")
    let names = { (path: String) throws -> [String] in
      let text =
        jar.field(for: try HTTPURL("https://www.shop.test" + path), isProtected: true, at: Self.now) ?? ""
      return text.split(separator: "; ").map { String($0.prefix { $0 != "=" }) }
    }
    jar.store(["kept=1; Secure; Path=/"], from: url, isProtected: true, at: Self.now)
    jar.store(["used=1; Path=/a"], from: url, isProtected: true, at: Self.now)
    for number in 0..<48 { jar.store(["n\(number)=1; Path=/b"], from: url, isProtected: true, at: Self.now) }
    #expect(try names("/a") == ["used", "kept"])
    jar.store(["new=1; Path=/"], from: url, isProtected: true, at: Self.now)
    #expect(try names("/") == ["kept", "new"])
    #expect(try names("/b").count == 49 && names("/b").first == "n1")
    #expect(try names("/a").contains("used"))
    // Other domains have their own limit, and protected cookies stay longest.
    jar.store(["other=1; Domain=shop.test; Path=/"], from: url, isProtected: true, at: Self.now)
    for number in 0..<60 { jar.store(["m\(number)=1; Path=/"], from: url, isProtected: true, at: Self.now) }
    let left = Set(try names("/"))
    #expect(
      left.count == 51 && left.isSuperset(of: ["kept", "other", "m59", "m11"]) && !left.contains("m10"))
    // A response without protection does not make room by removing protected cookies.
    for number in 0..<49 {
      jar.store(["m\(number + 11)=2; Secure; Path=/"], from: url, isProtected: true, at: Self.now)
    }
    jar.store(["plain=1; Path=/"], from: url, isProtected: false, at: Self.now)
    #expect(try !names("/").contains("plain"))
    jar.store(["plain=1; Path=/"], from: url, isProtected: true, at: Self.now)
    #expect(try names("/").contains("plain"))
    // Of one response, the first 50 count.
    let many = (0..<60).map { "c\($0)=1; Path=/c; Domain=b.www.shop.test" }
    let below = try HTTPURL("https://b.www.shop.test/c")
    jar.store(many, from: below, isProtected: true, at: Self.now)
    let field = jar.field(for: below, isProtected: true, at: Self.now) ?? ""
    #expect(field.contains("c49=") && !field.contains("c50="))
  }

  @Test("names and paths are compared byte by byte, and bytes that are no UTF-8 are ignored")
  func bytes() throws {
    let url = "https://www.shop.test/"
    #expect(try field(after: "__Host-\u{301}x=1; Domain=shop.test", from: url, for: url) == nil)
    #expect(try field(after: "e\u{301}=1", "\u{e9}=2", from: url, for: url) == "e\u{301}=1; \u{e9}=2")
    #expect(try field(after: "a=1; Path=/\u{301}", from: url, for: url) == nil)
    #expect(try field(after: "a=\u{fffd}", from: url, for: url) == nil)
  }

  /// A text that a hostile or careless server may send.
  private static func anyText(_ random: inout SplitMix64) -> String {
    let parts = [
      "a", "b", "=", ";", " ", "\t", "Domain=", "shop.test", "www.shop.test", ".", "Path=", "/", "/a",
      "Max-Age=",
      "-", "9", "Secure", "Expires=", "Thu, 01 Jan 1970 00:00:00 GMT", "2099", "__Host-", "é", "\u{0}", "\"",
      ",",
      "99999999999999999999", String(repeating: "v", count: 1500), "; Path=/", "; Domain=shop.test",
    ]
    return (0..<random.below(14)).map { _ in random.element(of: parts) }.joined()
  }

  @Test("whatever a server sets, the field can be sent and has at most 8190 bytes")
  func anyText() throws {
    let urls = try ["https://www.shop.test/a/b", "http://www.shop.test/", "https://shop.test/a"].map {
      try HTTPURL($0)
    }
    var longest = 0
    for seed in 1...20 as ClosedRange<UInt64> {
      var random = SplitMix64(seed: seed)
      let jar = CookieJar()
      for _ in 0..<300 {
        let moment = random.isOne(in: 20) ? random.element(of: [0, .max, .min]) : Self.now
        let texts = (0..<random.below(3)).map { _ in Self.anyText(&random) }
        jar.store(texts, from: random.element(of: urls), isProtected: random.isOne(in: 2), at: moment)
        let url = random.element(of: urls)
        guard let field = jar.field(for: url, isProtected: random.isOne(in: 2), at: moment) else { continue }
        #expect(HeaderFields.fault(of: HeaderField("Cookie", field)) == nil, "seed \(seed): \(texts)")
        longest = max(longest, field.utf8.count)
      }
    }
    #expect(longest > 7000 && longest <= 8190)
  }

  @Test(
    "in one session of the cache, a URL always gets the same cookies",
    arguments: 1...30 as ClosedRange<UInt64>)
  func sessions(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let urls = try [
      "https://www.shop.test/a/b", "https://www.shop.test/", "https://shop.test/a", "https://other.test/",
    ].map { try HTTPURL($0) }
    let jar = CookieJar()
    var now = Self.now
    /// What a URL got in a session.
    var fields: [String: String?] = [:]
    /// The sessions of each URL, in order.
    var sessions: [[String]] = urls.map { _ in [] }
    for _ in 0..<120 {
      now += Int64(random.below(4))
      if random.isOne(in: 3) {
        let attributes = ["", "; Path=/", "; Domain=shop.test", "; Max-Age=5", "; Max-Age=0", "; Secure"]
        let text = "\(random.element(of: ["a", "b"]))=\(random.below(3))\(random.element(of: attributes))"
        jar.store([text], from: random.element(of: urls), isProtected: true, at: now)
      }
      for (index, url) in urls.enumerated() where random.isOne(in: 2) {
        let session = jar.session(of: url, at: now)
        let field = jar.field(for: url, isProtected: true, at: now)
        let key = "\(url) \(session)"
        if let earlier = fields[key] { #expect(earlier == field, "seed \(seed): \(key)") }
        fields[key] = field
        if sessions[index].last != session {
          // A session that has ended does not come back.
          #expect(!sessions[index].contains(session), "seed \(seed)")
          sessions[index].append(session)
        }
      }
    }
    #expect(sessions.contains { $0.count > 5 })
    #expect(CookieJar().session(of: urls[0], at: now) != CookieJar().session(of: urls[0], at: now))
  }
}
