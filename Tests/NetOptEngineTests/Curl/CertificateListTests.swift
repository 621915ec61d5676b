import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptEngine

/// The certificates that a server sends after its own valid certificate.
@Suite struct CertificateListTests {
  /// TLS 1.2 and TLS 1.3 in nginx's syntax.
  private static let versions = ["TLSv1.2", "TLSv1.3"]

  /// Starts an origin that sends other certificates after its own valid certificate.
  ///
  /// - Parameters:
  ///   - others: the other certificates in PEM.
  ///   - version: the only TLS version of the origin, in nginx's syntax.
  ///   - requests: how many requests a connection serves before the origin closes it.
  private func origin(_ others: [String], _ version: String, requests: Int = 1000) async throws -> NginxOrigin
  {
    let certificate = try await TestCertificates.certificate(for: ["api.test", "*.api.test"])
    var settings = NginxSettings()
    settings.tlsVersions = version
    settings.keepaliveRequests = requests
    // OpenSSL's default security level would refuse the weak keys of the other certificates.
    settings.directives = "ssl_ciphers DEFAULT@SECLEVEL=0;"
    let listener = NginxOrigin.Listener(
      IPAddress.freshLoopback(1)[0], .certificate(try certificate.followed(by: others)))
    return try await NginxOrigin.start([listener], settings: settings)
  }

  /// Sends a request to an origin and returns the response or the error.
  private func outcome(of origin: NginxOrigin) async throws -> Result<NetOptResponse, NetOptError> {
    let bench = try await TransportBench()
    let request = try NetOptRequest(.get, "https://api.test:\(origin.port)/")
    let outcome: Result<NetOptResponse, NetOptError>
    do throws(NetOptError) {
      outcome = .success(try await bench.execute(request, origin.endpoints.map(\.address)))
    } catch { outcome = .failure(error) }
    await bench.end()
    return outcome
  }

  /// Expects that a request failed with `tlsFailed` and a message that contains these words.
  private func expectFailure(
    _ outcome: Result<NetOptResponse, NetOptError>, _ words: String,
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    guard case .failure(let error) = outcome else {
      Issue.record("there is an answer", sourceLocation: sourceLocation)
      return
    }
    #expect(error.code == .tlsFailed, sourceLocation: sourceLocation)
    #expect(error.message.contains(words), "\(error.message)", sourceLocation: sourceLocation)
  }

  @Test(
    "a certificate whose curve is given by parameters instead of by name is refused",
    arguments: ["prime256v1", "sect233r1"], versions)
  func describedCurve(_ curve: String, _ version: String) async throws {
    let origin = try await origin([JunkCertificate.ofDescribedCurve(curve)], version)
    defer { origin.stop() }
    expectFailure(
      try await outcome(of: origin),
      "failed: one of its certificates has a key on an unnamed curve")
  }

  @Test(
    "nine certificates with slow curve parameters delay other calls by less than 500 ms", arguments: versions)
  func slowCurves(_ version: String) async throws {
    let origin = try await origin([String](repeating: JunkCertificate.ofSlowCurve, count: 9), version)
    let other = try await NginxOrigin.start([NginxOrigin.Listener(IPAddress.freshLoopback(1)[0], .none)])
    defer {
      origin.stop()
      other.stop()
    }
    let bench = try await TransportBench()
    let request = try NetOptRequest(.get, "https://api.test:\(origin.port)/")
    let otherRequest = try NetOptRequest(.get, "http://other.test:\(other.port)/")
    _ = try await bench.execute(otherRequest, other.endpoints.map(\.address)).body.collect(upTo: 100)
    // Sends requests to the other origin until it is cancelled, and returns the duration of the longest call.
    let calls = Task {
      var longest = Duration.zero
      while !Task.isCancelled {
        longest = max(
          longest,
          await ContinuousClock().measure {
            _ = try? await bench.execute(otherRequest, other.endpoints.map(\.address)).body.collect(upTo: 100)
          })
      }
      return longest
    }
    let error = await failure { () throws(NetOptError) in
      _ = try await bench.execute(request, origin.endpoints.map(\.address))
    }
    calls.cancel()
    let longest = await calls.value
    // OpenSSL takes 100 ms to decode each of the nine certificates.
    #expect(longest < .milliseconds(500), "\(longest)")
    #expect(error?.code == .tlsFailed)
    await bench.end()
  }

  /// `beyond` is the number of bytes by which the list exceeds the limit.
  @Test(
    "a certificate list of 32 KiB is accepted, and a list with one byte more is refused",
    arguments: [0, 1], versions)
  func length(_ beyond: Int, _ version: String) async throws {
    let leaf = try await TestCertificates.certificate(for: ["api.test", "*.api.test"])
    // The length of the message without the second certificate. It has the length of the list (3 bytes) and
    // the length of each certificate (3 bytes). In TLS 1.3 it also has an empty context (1 byte), and empty
    // extensions for each certificate (2 bytes; RFC 8446, section 4.4.2).
    let rest = JunkCertificate.size(of: leaf.certificateFile) + (version == "TLSv1.3" ? 4 + 2 * 5 : 3 + 2 * 3)
    let origin = try await origin(
      [JunkCertificate.ofExtensions(bytes: OpenSSL.largestList - rest + beyond)], version)
    defer { origin.stop() }
    let outcome = try await outcome(of: origin)
    if beyond > 0 {
      expectFailure(outcome, "failed: its list of certificates has more than 32 KiB or 10 certificates")
    } else {
      let response = try outcome.get()
      #expect(response.status == 200 && response.tls?.version == version)
      #expect(response.tls?.subject == "CN = api.test")
    }
  }

  @Test(
    "a list of 10 certificates is accepted, and a list of 11 certificates is refused",
    arguments: [10, 11], versions)
  func count(_ count: Int, _ version: String) async throws {
    let junk = JunkCertificate.ofExtensions(bytes: 600)
    let origin = try await origin([String](repeating: junk, count: count - 1), version)
    defer { origin.stop() }
    let outcome = try await outcome(of: origin)
    if count > 10 {
      expectFailure(outcome, "failed: its list of certificates has more than 32 KiB or 10 certificates")
    } else {
      let response = try outcome.get()
      #expect(response.status == 200)
    }
  }

  @Test("200 hosts with certificate lists of 31 kB take less than 30 MB, and earlier sessions still resume")
  func memory() async throws {
    let origin = try await origin([JunkCertificate.ofExtensions(bytes: 31_000)], "TLSv1.3", requests: 1)
    defer { origin.stop() }
    let bench = try await TransportBench()
    // Sends a request to each of these hosts. The origin serves one request per connection, so each request
    // opens a connection.
    func call(_ numbers: Range<Int>) async throws {
      for number in numbers {
        let request = try NetOptRequest(.get, "https://h\(number).api.test:\(origin.port)/")
        let response = try await bench.execute(request, origin.endpoints.map(\.address))
        _ = try await response.body.collect(upTo: 100)
      }
    }
    try await call(0..<20)
    let before = ProcessFootprint.now.memoryBytes
    try await call(20..<220)
    let growth = ProcessFootprint.now.memoryBytes - before
    #expect(growth < 30_000_000, "\(growth) bytes")
    // The new connections to the first 20 hosts resume the TLS sessions of the earlier connections.
    try await call(0..<20)
    let log = try await origin.waitForLog(240)
    #expect(log.count(where: \.sessionReused) == 20)
    #expect(log.suffix(20).count(where: \.sessionReused) == 20)
    await bench.end()
  }
}
