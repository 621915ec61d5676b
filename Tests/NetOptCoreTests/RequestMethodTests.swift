import NetOptCore
import Testing

@Suite struct RequestMethodTests {
  @Test(
    "a method is safe or idempotent as RFC 9110 says",
    arguments: [
      (NetOptRequest.Method.get, true, true), (.head, true, true), (.options, true, true),
      (.trace, true, true),
      (.put, false, true), (.delete, false, true), (.post, false, false), (.patch, false, false),
      ("CONNECT", false, false), ("get", false, false), ("", false, false),
    ])
  func safeAndIdempotent(_ method: NetOptRequest.Method, _ isSafe: Bool, _ isIdempotent: Bool) {
    #expect(method.isSafe == isSafe)
    #expect(method.isIdempotent == isIdempotent)
  }

  @Test("methods are case-sensitive")
  func caseSensitivity() {
    #expect(NetOptRequest.Method(rawValue: "GET") == .get)
    #expect(NetOptRequest.Method(rawValue: "Get") != .get)
    #expect(NetOptRequest.Method.patch.description == "PATCH")
  }

  @Test("the versions of HTTP print as 1.0, 1.1, 2 and 3")
  func versionNames() {
    #expect([HTTPVersion.http1_0, .http1_1, .http2, .http3].map(\.description) == ["1.0", "1.1", "2", "3"])
  }
}
