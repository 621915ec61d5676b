import NetOptCore
import Testing

@Suite struct HTTPURLTests {
  /// A URL, its authority and its target.
  @Test(
    "parsing gives the authority and the target, and keeps the target as it is written",
    arguments: [
      ("https://a.test", "a.test", "/"),
      ("HTTPS://A.Test/", "a.test", "/"),
      ("https://a.test./x", "a.test", "/x"),
      ("https://a.test:443/x", "a.test", "/x"),
      ("https://a.test:/x", "a.test", "/x"),
      ("https://a.test:00080/", "a.test:80", "/"),
      ("https://a.test:65535", "a.test:65535", "/"),
      ("https://a_b.x-1.test", "a_b.x-1.test", "/"),
      ("https://localhost", "localhost", "/"),
      ("https://1a.2b", "1a.2b", "/"),
      ("https://192.0.2.1:8443/", "192.0.2.1:8443", "/"),
      ("https://[2001:DB8:0:0::1]:8443/", "[2001:db8::1]:8443", "/"),
      ("https://[::ffff:1.2.3.4]/", "[::ffff:1.2.3.4]", "/"),
      ("https://a.test?q", "a.test", "/?q"),
      ("https://a.test?", "a.test", "/?"),
      ("https://a.test#f", "a.test", "/"),
      ("https://a.test/p?q#f?g", "a.test", "/p?q"),
      ("https://a.test/#/x", "a.test", "/"),
      // Parsing keeps dot segments, empty segments, escapes and delimiters as they are written.
      ("https://a.test/a/../b/./c//d", "a.test", "/a/../b/./c//d"),
      ("https://a.test/%7e%zz%", "a.test", "/%7e%zz%"),
      (
        "https://a.test/a:b@c;d,e=f&g'(h)*i!$[j]{k}|\\l^`\"<>", "a.test",
        "/a:b@c;d,e=f&g'(h)*i!$[j]{k}|\\l^`\"<>"
      ),
      ("https://a.test/?u=https://b.test/@x", "a.test", "/?u=https://b.test/@x"),
      // Parsing percent-encodes characters outside ASCII.
      ("https://a.test/é?ü=😀", "a.test", "/%C3%A9?%C3%BC=%F0%9F%98%80"),
      ("https://a.test/\u{301}x?\u{301}#\u{301}y", "a.test", "/%CC%81x?%CC%81"),
    ])
  func reads(_ text: String, _ authority: String, _ target: String) throws {
    let url = try HTTPURL(text)
    #expect(url.origin.authority == authority)
    #expect(url.target == target)
    #expect(try HTTPURL(url.description) == url)
  }

  /// A text, and a part of the error's message.
  @Test(
    "parsing refuses an unusable URL and names the broken rule",
    arguments: [
      ("", "no scheme"),
      ("a.test", "no scheme"),
      ("//a.test/", "no scheme"),
      ("/path", "no scheme"),
      ("https:/a.test", "no scheme"),
      ("https:a.test", "no scheme"),
      ("ftp://a.test", "scheme is not https or http"),
      ("://a.test", "scheme is not https or http"),
      ("httpſ://a.test", "scheme is not https or http"),
      ("https://", "has no host"),
      ("https:///x", "has no host"),
      ("https://:443", "has no host"),
      ("https://.", "has no host"),
      ("https://?q", "has no host"),
      ("https://a..test", "empty label"),
      ("https://.a.test", "empty label"),
      ("https://a.test..", "empty label"),
      ("https://a b.test", "write %20"),
      (" https://a.test", "write %20"),
      ("https://a.test/a b", "write %20"),
      ("https://a.test/\r\nHost: b", "control character 13"),
      ("https://a.test/\0", "control character 0"),
      ("https://a.test/\u{7f}", "control character 127"),
      ("https://a%2etest", "host names cannot have"),
      ("https://a*.test", "host names cannot have"),
      ("https://a,b", "host names cannot have"),
      ("https://bücher.test", "xn-- form"),
      ("https://a.test\u{301}/", "xn-- form"),
      ("https://a.test\\b", "backslash"),
      ("https://\\a.test", "backslash"),
      ("https://user@a.test", "user name"),
      ("https://@a.test", "user name"),
      ("https://a.test@[::1]/", "user name"),
      ("https://a.test:0", "1 to 65535"),
      ("https://a.test:65536", "1 to 65535"),
      ("https://a.test:99999999999999999999", "1 to 65535"),
      ("https://a.test:-1", "1 to 65535"),
      ("https://a.test:+1", "1 to 65535"),
      ("https://a.test:8_0", "1 to 65535"),
      ("https://a.test:80:80", "1 to 65535"),
      ("https://a.test:٨٠", "1 to 65535"),
      ("https://::1/", "has no host"),
      ("https://[::1", "not closed"),
      ("https://[]", "is not an IPv6 address"),
      ("https://[1.2.3.4]", "is not an IPv6 address"),
      ("https://[fe80::1%25lo]/", "is not an IPv6 address"),
      ("https://[::1]80", "after ]"),
      ("https://[::1]:x", "1 to 65535"),
      ("https://1.2.3", "ends in a number"),
      ("https://127.1", "ends in a number"),
      ("https://2130706433", "ends in a number"),
      ("https://1.2.3.256", "ends in a number"),
      ("https://010.0.0.1", "ends in a number"),
      ("https://0x7f000001", "ends in a number"),
      ("https://0X7F.0.0.0x1.", "ends in a number"),
      ("https://a.0x", "ends in a number"),
      ("https://" + String(repeating: "a", count: 64) + ".test", "longer than 63 bytes"),
      ("https://" + String(repeating: "a.", count: 127) + "a", "longer than 253 bytes"),
    ])
  func refuses(_ text: String, _ rule: String) {
    let error = #expect(throws: NetOptError.self) { try HTTPURL(text) }
    #expect(error?.code == .invalidURL)
    #expect(error?.message.contains(rule) == true, "\(error?.message ?? "")")
  }

  @Test("a URL has at most 64 KiB")
  func longestURL() throws {
    let longest = "https://a.test/" + String(repeating: "a", count: HTTPURL.longest - 15)
    #expect(try HTTPURL(longest).description == longest)
    let error = #expect(throws: NetOptError.self) { try HTTPURL(longest + "a") }
    #expect(error?.code == .invalidURL)
    #expect(error?.message.contains("it has 65537 bytes, and netopt sends at most 64 KiB") == true)
  }

  @Test("parsing accepts a host name of the maximum length, 253 bytes")
  func longestHost() throws {
    let label = String(repeating: "a", count: 63)
    let host = [label, label, label, String(repeating: "a", count: 61)].joined(separator: ".")
    #expect(try HTTPURL("https://\(host)./").origin.host == host)
  }

  @Test(
    "a URL splits its target into the path and the query at the first question mark",
    arguments: [
      ("/a/b?c=d?e", "/a/b", "c=d?e"), ("/a", "/a", nil), ("/?", "/", ""), ("?x", "/", "x"),
    ] as [(String, String, String?)])
  func pathAndQuery(_ target: String, _ path: String, _ query: String?) throws {
    let url = try HTTPURL("https://a.test" + target)
    #expect(url.path == path)
    #expect(url.query.map { String($0) } == query)
  }
}
