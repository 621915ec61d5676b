import NetOptCore
import NetOptTestSupport
import Testing

@testable import NetOptEngine

@Suite struct ProxyURLTests {
  @Test(
    "a proxy URL that libcurl accepts has no fault",
    arguments: [
      "http://127.0.0.1:3128", "127.0.0.1:3128", "proxy.test", "HTTPS://proxy.test:8443/",
      "socks5h://user:p%40ss%7@[::1]:1080",
      "http://user:p@ss/w@proxy.test:80", "socks4a://proxy.test",
    ])
  func validURLs(_ url: String) { #expect(ProxyURL.fault(of: url) == nil) }

  @Test("user name and password together have at most 2048 bytes")
  func longCredentials() {
    #expect(ProxyURL.fault(of: "u:" + String(repeating: "a", count: 2046) + "@proxy.test") == nil)
  }

  @Test(
    "the fault of an invalid proxy URL names the invalid part",
    arguments: [
      ("ftp://proxy.test", "scheme"), ("", "no host"), ("http://", "no host"), ("http://:3128", "no host"),
      ("http://proxy.test:0", "port"), ("http://proxy.test:99999", "port"), ("http://[::1]:x", "port"),
      ("http://proxy.test\r\n", "control character"), ("http://a b", "space"),
      ("http://user:p%01@proxy.test", "control character"),
      ("socks5h://us%0der@proxy.test", "control character"),
      ("http://user:%00@proxy.test", "control character"),
      ("user:%7f@proxy.test", "control character"),
      ("https://u:" + String(repeating: "a", count: 2047) + "@proxy.test", "more than 2048 bytes"),
    ])
  func invalidURLs(_ url: String, _ part: String) {
    #expect(ProxyURL.fault(of: url)?.contains(part) == true)
  }

  @Test(
    "a message shows only the scheme, host and port of a proxy URL",
    arguments: [
      ("http://user:pass@proxy.test:1/?token=x", "http://proxy.test:1"),
      ("user:pa/ss@proxy.test", "proxy.test"),
      ("socks5://[::1]:1080", "socks5://[::1]:1080"), ("http://user:pass", "http://…"), ("user:pass", "…"),
      ("http://user:pass%40proxy.test", "http://…"), ("http://proxy.test:99999", "http://proxy.test:99999"),
    ])
  func shownURLs(_ url: String, _ shown: String) { #expect(ProxyURL.shown(url) == shown) }

  @Test(
    "a message shows no part of a password, wherever the proxy URL is wrong",
    arguments: 1...5 as ClosedRange<UInt64>)
  func hiddenPasswords(_ seed: UInt64) {
    var random = SplitMix64(seed: seed)
    func pick(_ texts: [String]) -> String { texts.randomElement(using: &random) ?? "" }
    for _ in 0..<500 {
      // The password has three words, with a mark or nothing between them. No word may be shown.
      let parts = ["zebra", "quokka", "vixen"]
      let marks = ["", "%2F", "%", "..", "!", "é", ":", "@", "/", "#", "?", "\\", " ", "://"]
      // What comes between the password and the host. Only the raw "@" is valid there.
      let end = pick(["@", "%40", "%2540", ""])
      // The host follows the last raw "@" of the URL. Without a raw "@" at its end, the password has no other
      // raw "@" either: the words after it would be the host.
      let own = end == "@" ? marks : marks.filter { $0 != "@" }
      let password = parts[0] + pick(own) + parts[1] + pick(own) + parts[2]
      let url =
        pick(["http://", "https://", "socks5h://", "", "htp://"]) + pick(["user:", "us%65r:", ":"]) + password
        + end
        + (end.isEmpty ? "" : pick(["proxy.test", "proxy.test:80", "proxy.test:x", "[::1]:1", ""]))
        + pick(["", "/"])
      let shown = ProxyURL.shown(url)
      #expect(!parts.contains(where: shown.contains), "seed \(seed): \(url): \(shown)")
    }
  }

  @Test("no byte in the password of a proxy's URL makes a request bypass the proxy")
  func noBypass() async throws {
    let server = try LoopbackServer(.raw { try $0.respond(200) })
    defer { server.stop() }
    // The proxy's port, on which nothing listens. A request succeeds only if it bypasses the proxy.
    let dead = try FreePort.find(on: [.loopback])
    let bench = try await TransportBench()
    for byte in 0...255 {
      for scheme in ["http", "https", "socks5", "socks5h", "socks4a"] {
        let text = "%" + String(byte + 256, radix: 16).dropFirst()
        let url = try HTTPURL("http://\(server.endpoint)/")
        let plan = RoutePlan(
          origin: url.origin, proxy: "\(scheme)://user:p\(text)@127.0.0.1:\(dead)", policy: .fastest,
          directOff: .proxy,
          legs: [RoutePlan.Leg(.proxy, source: .dns)])
        let now = bench.loop.now()
        let context = CallContext(id: 1, started: now, deadline: now + .seconds(10))
        let error = await failure { () async throws(NetOptError) in
          _ = try await bench.transport.execute(NetOptRequest(.get, url), along: plan, in: context)
        }
        #expect(error != nil, "\(scheme) \(text)")
      }
    }
    #expect(server.requests.isEmpty)
    await bench.end()
  }
}
