import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// Which new connections resume the TLS session of an earlier connection.
@Suite struct SessionResumptionTests {
  /// Starts an origin that closes each connection after one request.
  ///
  /// - Parameters:
  ///   - addresses: the number of its addresses.
  ///   - versions: the TLS versions that it accepts, as nginx names them.
  private func origin(_ addresses: Int, _ versions: String = "TLSv1.2 TLSv1.3") async throws -> NginxOrigin {
    var settings = NginxSettings()
    settings.keepaliveRequests = 1
    settings.tlsVersions = versions
    return try await NginxOrigin.start(
      for: ["api.test"], on: IPAddress.freshLoopback(addresses), settings: settings)
  }

  /// Sends requests one after the other, each on a new connection. Returns the access log of the origin.
  ///
  /// - Parameters:
  ///   - count: the number of requests.
  ///   - addresses: the addresses of the origin, which the requests use in turn.
  ///   - version: the HTTP version that the requests ask for.
  private func request(
    _ count: Int, of origin: NginxOrigin, at addresses: [IPAddress], version: RequestOptions.Version
  ) async throws -> [AccessLogEntry] {
    let bench = try await TransportBench()
    var request = try NetOptRequest(.get, "https://api.test:\(origin.port)/")
    request.options.version = version
    for index in 0..<count {
      let response = try await bench.execute(request, [addresses[index % addresses.count]])
      _ = try await response.body.collect(upTo: 100)
    }
    await bench.end()
    let log = try await origin.waitForLog(count)
    let counts = try #require(bench.transport.counts)
    #expect(counts.resumedHandshakes == log.count(where: \.sessionReused))
    #expect(counts.fullHandshakes == log.count { !$0.sessionReused })
    #expect(counts.connections == Set(log.map(\.connection)).count && counts.openConnections == 0)
    return log
  }

  @Test(
    "each connection after the first one resumes the TLS session",
    arguments: [RequestOptions.Version.automatic, .http1], ["TLSv1.3", "TLSv1.2"])
  func furtherConnections(version: RequestOptions.Version, tls: String) async throws {
    let origin = try await origin(1, tls)
    defer { origin.stop() }
    let log = try await request(20, of: origin, at: origin.endpoints.map(\.address), version: version)
    #expect(Set(log.map(\.connection)).count == 20)
    #expect(log.allSatisfy { $0.version == (version == .http1 ? "HTTP/1.1" : "HTTP/2.0") })
    #expect(log.count(where: \.sessionReused) == 19)
  }

  @Test("each address of an origin has its own TLS session")
  func sessionPerAddress() async throws {
    let origin = try await origin(5)
    defer { origin.stop() }
    let log = try await request(25, of: origin, at: origin.endpoints.map(\.address), version: .automatic)
    #expect(log.count(where: \.sessionReused) == 20)
    #expect(Set(log.filter { !$0.sessionReused }.map(\.serverAddress)).count == 5)
  }

  @Test("a request that verifies certificates does not resume an unverified session")
  func unverifiedSession() async throws {
    let origin = try await origin(1)
    defer { origin.stop() }
    let bench = try await TransportBench()
    var request = try NetOptRequest(.get, "https://api.test:\(origin.port)/")
    for verification in [RequestOptions.Verification.none, .none, .full, .full] {
      request.options.verification = verification
      let response = try await bench.execute(request, origin.endpoints.map(\.address))
      _ = try await response.body.collect(upTo: 100)
    }
    await bench.end()
    #expect(try await origin.waitForLog(4).map(\.sessionReused) == [false, true, false, true])
  }

  /// netopt keeps sessions of at most 8 KiB (`OpenSSL.largestSession`), and a session contains the server's
  /// certificate. `names` is the number of names in the certificate besides "api.test", and whether sessions
  /// with this certificate are kept.
  @Test(
    "a session whose certificate has 200 names is kept, and one with 600 names is not",
    arguments: ["TLSv1.3", "TLSv1.2"],
    [(200, true), (600, false)])
  func largeCertificate(tls: String, names: (count: Int, areKept: Bool)) async throws {
    let all = ["api.test"] + (0..<names.count).map { "a-name-\($0).test" }
    var settings = NginxSettings()
    settings.keepaliveRequests = 1
    settings.tlsVersions = tls
    let origin = try await NginxOrigin.start(for: all, on: IPAddress.freshLoopback(1), settings: settings)
    defer { origin.stop() }
    let bench = try await TransportBench()
    let request = try NetOptRequest(.get, "https://api.test:\(origin.port)/")
    for _ in 0..<4 {
      let response = try await bench.execute(request, origin.endpoints.map(\.address))
      _ = try await response.body.collect(upTo: 100)
      // The response has these details also when its connection resumed a session.
      #expect(response.tls?.verified == true && response.tls?.version == tls)
      #expect(response.tls?.subject == "CN = api.test" && response.tls?.notAfter != nil)
    }
    await bench.end()
    let kept = names.areKept
    #expect(try await origin.waitForLog(4).map(\.sessionReused) == [false, kept, kept, kept])
  }
}
