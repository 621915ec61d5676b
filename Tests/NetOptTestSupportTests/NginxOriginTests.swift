import Foundation
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@Suite struct NginxOriginTests {
  /// Sends a request to the first address of an origin with curl(1), which shares no code with the code under
  /// test.
  private func curl(_ origin: NginxOrigin, _ path: String, _ arguments: String...) async throws -> Curl {
    try await Curl.run(
      ["--connect-to", "a.example:\(origin.port):\(origin.listeners[0].address):\(origin.port)"]
        + ["--cacert", TestCertificates.authorityFile()] + arguments
        + ["https://a.example:\(origin.port)\(path)"])
  }

  /// Starts an origin at one address.
  ///
  /// - Parameter name: the host name in the certificate.
  private func start(
    _ kind: TestCertificates.Kind = .valid, for name: String = "a.example",
    settings: NginxSettings = NginxSettings()
  ) async throws -> NginxOrigin {
    let certificate = try await TestCertificates.certificate(kind, for: [name])
    return try await NginxOrigin.start(
      [.init(IPAddress.freshLoopback(1)[0], .certificate(certificate))], settings: settings)
  }

  @Test("nginx serves the configured locations") func servesLocations() async throws {
    let origin = try await start()
    defer { origin.stop() }
    #expect(try await curl(origin, "/").output == "hello\n")
    #expect(try await curl(origin, "/bytes/1000").output.utf8.count == 1000)
    #expect(try await curl(origin, "/bytes/100000000", "-I").output.contains("content-length: 100000000"))
    #expect(try await curl(origin, "/status/503", "-w", "%{http_code}").output.hasSuffix("503"))
    #expect(try await curl(origin, "/redirect/307?to=/text", "-i").output.contains("location: /text\r\n"))
    #expect(try await curl(origin, "/text", "--compressed").output.utf8.count == 20_000)
    #expect(try await curl(origin, "/text", "--compressed", "-I").output.contains("content-encoding: gzip"))
    #expect(try await curl(origin, "/slow?s=0.01").output == "done\n")
    #expect(try await curl(origin, "/slow-body?s=0.01").output == "first\nlast\n")
    #expect(try await curl(origin, "/upload", "-d", "12345").output == "5\n")
    let echo = try await curl(origin, "/echo?q=1", "-d", "body", "-H", "X-Test: \"v\"").output
    #expect(echo.hasPrefix("POST /echo?q=1 HTTP/1.1\r\n"))
    #expect(echo.lowercased().contains("\r\nhost: a.example:\(origin.port)\r\n"))
    #expect(echo.contains("\r\nx-test: \"v\"\r\n"))
    #expect(echo.hasSuffix("\r\n\r\nbody"))
  }

  @Test("the log contains the properties of each request") func requestLog() async throws {
    let origin = try await start()
    defer { origin.stop() }
    _ = try await curl(origin, "/?q=%22", "-A", "one \"two\"")
    _ = try await curl(origin, "/upload", "--http1.1", "-d", "12345")
    let log = try await origin.waitForLog(2)
    #expect(log.map(\.version) == ["HTTP/2.0", "HTTP/1.1"])
    #expect(log.map(\.method) == ["GET", "POST"])
    #expect(log[0].target == "/?q=%22")
    #expect(log[0].serverName == "a.example")
    #expect(log[0].host == "a.example:\(origin.port)")
    #expect(log[0].address == origin.listeners[0].address)
    #expect(log[0].serverPort == origin.port)
    #expect(log[0].userAgent == "one \"two\"")
    #expect(log[0].bodyBytes == 6)
    #expect(log[0].connection != log[1].connection)
    #expect(log[1].requestOfConnection == 1)
    #expect(!log[1].sessionReused)
    #expect(log[1].requestLength > 5)
  }

  @Test("each address has its own security: a certificate, a rejected handshake or plain HTTP")
  func addressSecurity() async throws {
    let addresses = IPAddress.freshLoopback(3)
    let origin = try await NginxOrigin.start([
      .init(addresses[0], .certificate(try await TestCertificates.certificate(for: ["other.example"]))),
      .init(addresses[1], .rejected),
      .init(addresses[2], .none),
    ])
    defer { origin.stop() }
    // Exit codes of curl(1). 60: the certificate could not be verified. 35: the TLS handshake failed.
    #expect(try await curl(origin, "/").status == 60)
    #expect(try await Curl.run(["-k", "https://\(addresses[1]):\(origin.port)/"]).status == 35)
    #expect(try await Curl.run(["http://\(addresses[2]):\(origin.port)/"]).output == "hello\n")
    let log = try await origin.waitForLog(1)
    #expect(log.map(\.address) == [addresses[2]])
  }

  /// `status` is the exit code of curl(1). 60: the certificate could not be verified.
  @Test(
    "curl accepts only the valid kind of certificate",
    arguments: [
      (TestCertificates.Kind.valid, Int32(0)), (.expired, 60), (.selfSigned, 60), (.otherAuthority, 60),
    ])
  func certificatesAreWhatTheySay(_ kind: TestCertificates.Kind, _ status: Int32) async throws {
    let origin = try await start(kind)
    defer { origin.stop() }
    #expect(try await curl(origin, "/").status == status)
    #expect(try await curl(origin, "/", "-k").status == 0)
  }

  @Test("a frozen origin does not answer until it is thawed") func frozenOrigin() async throws {
    let origin = try await start()
    defer { origin.stop() }
    origin.freeze()
    // 28: the operation timed out.
    #expect(try await curl(origin, "/", "-m", "0.2").status == 28)
    origin.thaw()
    #expect(try await curl(origin, "/").status == 0)
  }

  @Test("the port of an origin is free again after stop") func portAfterStop() async throws {
    let origin = try await start()
    _ = try await curl(origin, "/")
    origin.stop()
    // 7: could not connect.
    #expect(try await curl(origin, "/").status == 7)
    let again = try await NginxOrigin.start(origin.listeners, port: origin.port)
    defer { again.stop() }
    #expect(try await curl(again, "/").status == 0)
  }

  @Test("the error for a faulty directive names the directive") func faultyDirective() async throws {
    var settings = NginxSettings()
    settings.directives = "no_such_directive;"
    let error = try #require(
      await #expect(throws: TestSupportError.self) { _ = try await start(settings: settings) })
    #expect(error.description.contains("no_such_directive"))
  }
}
