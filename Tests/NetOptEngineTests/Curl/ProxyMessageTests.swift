import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptEngine

@Suite("A proxy that opens no way to the server is named, with what it said") struct ProxyMessageTests {
  /// The behaviour of a proxy, and what the error of a call through this proxy must be.
  private struct Case: Sendable, CustomTestStringConvertible {
    /// What the proxy does, for the test's output.
    let testDescription: String
    let behaviour: LoopbackServer.Behaviour
    /// The scheme of the proxy's URL.
    var scheme = "http"
    /// The user name and password in the proxy's URL, up to the "@"; empty for none.
    var user = "user:sesame@"
    var code = NetOptError.Code.proxyFailed
    let isRetryable: Bool
    /// The texts that the error's message must contain.
    let words: [String]
  }

  /// An HTTP proxy that sends `bytes` in response to CONNECT and then ends the connection.
  private static func answering(_ bytes: String) -> LoopbackServer.Behaviour {
    .raw {
      try $0.write(bytes)
      try $0.end()
    }
  }

  /// An HTTP proxy that sends `start` in response to CONNECT, and then `piece` again and again, without end.
  private static func goingOn(_ start: String, _ piece: String) -> LoopbackServer.Behaviour {
    .raw {
      try $0.write(start)
      while true { try $0.write(String(repeating: piece, count: 1000)) }
    }
  }

  /// An HTTP proxy that responds to CONNECT with a status.
  private static func status(_ status: Int) -> LoopbackServer.Behaviour { .raw { try $0.respond(status) } }

  /// The cases of HTTP proxies.
  private static let http: [Case] = [
    Case(
      testDescription: "407", behaviour: status(407), isRetryable: false,
      words: ["user name and password in its URL (407)"]),
    Case(
      testDescription: "407 without credentials", behaviour: status(407), user: "", isRetryable: false,
      words: ["requires a user name", "http://USER:PASSWORD@HOST:PORT"]),
    Case(
      testDescription: "403", behaviour: status(403), isRetryable: false,
      words: ["refused to connect to api.test:443 (403)"]),
    Case(
      testDescription: "403 and the end", behaviour: answering("HTTP/1.1 403 No\r\n\r\nno"),
      isRetryable: false,
      words: ["refused to connect to api.test:443 (403)"]),
    Case(
      testDescription: "302", behaviour: status(302), isRetryable: false,
      words: ["answered with 302", "no tunnel"]),
    Case(
      testDescription: "502", behaviour: status(502), isRetryable: true,
      words: ["could not connect to api.test:443 (502)"]),
    Case(
      testDescription: "503", behaviour: status(503), isRetryable: true,
      words: ["could not connect to api.test:443 (503)"]),
    Case(
      testDescription: "garbage", behaviour: answering("garbage garbage\r\n\r\n"), isRetryable: true,
      words: ["not HTTP"]),
    Case(
      testDescription: "the end", behaviour: answering(""), isRetryable: true,
      words: ["closed the connection without an answer"]),
    Case(
      testDescription: "a cut answer", behaviour: answering("HTTP/1.1 20"), isRetryable: true,
      words: ["closed the connection without an answer"]),
    Case(
      testDescription: "a reset", behaviour: .resetting, isRetryable: true, words: ["reset the connection"]),
    Case(
      testDescription: "a long answer",
      behaviour: answering("HTTP/1.1 200 OK\r\nX: \(String(repeating: "a", count: 400_000))\r\n\r\n"),
      isRetryable: true, words: ["longer than libcurl accepts"]),
    Case(
      testDescription: "many fields",
      behaviour: answering(
        "HTTP/1.1 200 OK\r\n\(String(repeating: "X: aaaaaaaaaaaaaaaaaaa\r\n", count: 20_000))\r\n"),
      isRetryable: true, words: ["more than 64 KiB"]),
    Case(
      testDescription: "fields behind the last chunk without end",
      behaviour: goingOn("HTTP/1.1 407 No\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "a: b\r\n"),
      isRetryable: true, words: ["more than 64 KiB"]),
    Case(
      testDescription: "a body without end",
      behaviour: goingOn("HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\n", "aaaa"),
      code: .tlsFailed, isRetryable: true, words: ["check that this port serves TLS"]),
    Case(
      testDescription: "a refusal whose body has no end",
      behaviour: goingOn("HTTP/1.1 407 No\r\nContent-Length: 9999999999\r\n\r\n", "aaaa"),
      isRetryable: true, words: ["more than 64 KiB"]),
    Case(
      testDescription: "silence", behaviour: .silent, isRetryable: true,
      words: ["did not connect to api.test:443 in time"]),
    Case(
      testDescription: "a tunnel that ends", behaviour: answering("HTTP/1.1 200 OK\r\n\r\n"),
      code: .tlsFailed,
      isRetryable: true, words: ["api.test:443 (through the proxy", "closed the connection"]),
    Case(
      testDescription: "a tunnel to something else",
      behaviour: answering("HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 400 Bad Request\r\n\r\n"), code: .tlsFailed,
      isRetryable: true, words: ["api.test:443 (through the proxy", "check that this port serves TLS"]),
  ]

  /// A SOCKS 5 proxy that asks for no password, and replies to the request for a connection with a code (RFC
  /// 1928, section 6). It sends everything at once.
  private static func socks5(reply: UInt8) -> LoopbackServer.Behaviour {
    .greeting([5, 0, 5, reply, 0, 1, 0, 0, 0, 0, 0, 0])
  }

  /// The cases of SOCKS proxies.
  private static let socks: [Case] = [
    Case(
      testDescription: "no method", behaviour: .greeting([5, 0xff]), scheme: "socks5h", user: "",
      isRetryable: false, words: ["requires a user name", "socks5h://USER:PASSWORD@HOST:PORT"]),
    Case(
      testDescription: "a wrong password", behaviour: .greeting([5, 2, 1, 1]), scheme: "socks5h",
      isRetryable: false, words: ["user name and password in its URL"]),
    // netopt does not allow this method: libcurl would block the event loop's thread until the proxy sends
    // its GSSAPI tokens.
    Case(
      testDescription: "Kerberos", behaviour: .greeting([5, 1]), scheme: "socks5h", isRetryable: false,
      words: ["requires Kerberos (GSSAPI)"]),
    Case(
      testDescription: "a rule", behaviour: socks5(reply: 2), scheme: "socks5h", isRetryable: false,
      words: ["do not allow a connection to api.test:443"]),
    Case(
      testDescription: "refused", behaviour: socks5(reply: 5), scheme: "socks5h", isRetryable: true,
      words: ["could not connect to api.test:443: the server refused"]),
    Case(
      testDescription: "unreachable", behaviour: socks5(reply: 4), scheme: "socks5h", isRetryable: true,
      words: ["cannot reach the host"]),
    Case(
      testDescription: "a failure", behaviour: socks5(reply: 1), scheme: "socks5h", isRetryable: true,
      words: ["gives no reason"]),
    Case(
      testDescription: "another version", behaviour: .greeting([4, 0]), scheme: "socks5h", isRetryable: false,
      words: ["does not speak SOCKS, although its URL says so"]),
    Case(
      testDescription: "the end of SOCKS", behaviour: .closing, scheme: "socks5h", isRetryable: true,
      words: ["closed the connection"]),
    Case(
      testDescription: "SOCKS 4", behaviour: .greeting([0, 0x5b, 0, 0, 0, 0, 0, 0]), scheme: "socks4a",
      isRetryable: true, words: ["could not connect to api.test:443"]),
    Case(
      testDescription: "SOCKS to something else",
      behaviour: .greeting([5, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0] + Array("SSH-2.0-x\r\n".utf8)),
      scheme: "socks5h", code: .tlsFailed, isRetryable: true,
      words: ["api.test:443 (through the proxy", "check that this port serves TLS"]),
  ]

  /// Returns the error of a call through a proxy. The test fails if the call succeeds.
  ///
  /// - Parameters:
  ///   - url: the URL of the request.
  ///   - proxy: the URL of the proxy.
  private func error(_ url: String, through proxy: String, _ bench: TransportBench) async throws
    -> NetOptError
  {
    let url = try HTTPURL(url)
    let plan = RoutePlan(
      origin: url.origin, proxy: proxy, policy: .fastest, directOff: .proxy,
      legs: [RoutePlan.Leg(.proxy, source: .dns)])
    let now = bench.loop.now()
    let context = CallContext(id: 1, started: now, deadline: now + .seconds(20))
    var request = NetOptRequest(.get, url)
    request.options.connectTimeout = .seconds(1)
    let limited = request
    return try #require(
      await failure { () async throws(NetOptError) in
        _ = try await bench.transport.execute(limited, along: plan, in: context)
      })
  }

  @Test(
    "the error names the HTTP or SOCKS proxy and the cause, without the password", arguments: http + socks)
  private func isNamed(_ wanted: Case) async throws {
    let server = try LoopbackServer(wanted.behaviour)
    defer { server.stop() }
    let bench = try await TransportBench()
    let error = try await error(
      "https://api.test/", through: "\(wanted.scheme)://\(wanted.user)\(server.endpoint)", bench)
    #expect(error.code == wanted.code, "\(error.message)")
    #expect(error.isRetryable == wanted.isRetryable, "\(error.message)")
    for words in wanted.words + ["the proxy \(wanted.scheme)://\(server.endpoint)"] {
      #expect(error.message.contains(words), "\(error.message)")
    }
    #expect(!error.description.contains("sesame"))
    await bench.end()
  }

  @Test("the error for a proxy with a certificate of another host names the proxy and both hosts")
  func certificates() async throws {
    let certificate = try await TestCertificates.certificate(for: ["elsewhere.test"])
    let origin = try await NginxOrigin.start([NginxOrigin.Listener(.loopback, .certificate(certificate))])
    defer { origin.stop() }
    let bench = try await TransportBench()
    let error = try await error("https://api.test/", through: "https://127.0.0.1:\(origin.port)", bench)
    #expect(error.code == .certificateName)
    #expect(
      error.message.contains(
        "the certificate of the proxy https://127.0.0.1:\(origin.port) is for elsewhere.test"))
    #expect(error.message.hasSuffix("not for 127.0.0.1"))
    await bench.end()
  }

  @Test("the error names the proxy whose host name has no address, without the password")
  func unknownName() async throws {
    let bench = try await TransportBench()
    let error = try await error(
      "https://api.test/", through: "http://user:sesame@nowhere.invalid:3128", bench)
    #expect(
      error.code == .proxyFailed
        && error.message.contains("no address is known for the proxy http://nowhere.invalid:3128"))
    #expect(!error.description.contains("sesame"))
    await bench.end()
  }
}
