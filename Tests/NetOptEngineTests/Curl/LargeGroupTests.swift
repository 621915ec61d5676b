import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// The sizes of the Diffie-Hellman groups that netopt accepts. In TLS 1.2 the server may choose any group. In
/// TLS 1.3 it chooses one of the groups of RFC 7919.
@Suite struct LargeGroupTests {
  /// Starts an origin that exchanges keys only in one group of RFC 7919. Its certificate has an RSA key,
  /// because TLS 1.2 has no cipher suite that combines such a group with a key on an elliptic curve.
  ///
  /// - Parameters:
  ///   - bits: the size of the group: 2048, 4096, 6144 or 8192.
  ///   - version: the only TLS version that the origin accepts, as nginx names it.
  private func origin(_ bits: Int, _ version: String = "TLSv1.2") async throws -> NginxOrigin {
    let directory = try TemporaryDirectory.make("group")
    let (certificate, key, group) = ("\(directory)/rsa.pem", "\(directory)/rsa.key", "\(directory)/group.pem")
    try await ChildProcess.run(
      "openssl",
      ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=api.test", "-keyout", key]
        + ["-out", certificate], in: directory)
    try await ChildProcess.run(
      "openssl",
      ["genpkey", "-genparam", "-algorithm", "DH", "-pkeyopt", "group:ffdhe\(bits)", "-out", group],
      in: directory)
    var settings = NginxSettings()
    settings.tlsVersions = version
    let choice =
      version == "TLSv1.2" ? "ssl_ciphers kDHE; ssl_dhparam \(group);" : "ssl_ecdh_curve ffdhe\(bits);"
    settings.directives = "ssl_certificate \(certificate); ssl_certificate_key \(key); \(choice)"
    return try await NginxOrigin.start(for: ["api.test"], on: IPAddress.freshLoopback(1), settings: settings)
  }

  /// Returns the origin's response to a GET request. The request does not verify the origin's certificate,
  /// which no authority has signed.
  private func answer(of origin: NginxOrigin) async throws -> NetOptResponse {
    let bench = try await TransportBench()
    var request = try NetOptRequest(.get, "https://api.test:\(origin.port)/")
    request.options.verification = .none
    do {
      let response = try await bench.execute(request, origin.endpoints.map(\.address))
      _ = try await response.body.collect(upTo: 100)
      await bench.end()
      return response
    } catch {
      await bench.end()
      throw error
    }
  }

  @Test(
    "the transport uses groups of 2048 and 4096 bits in TLS 1.2 and TLS 1.3",
    arguments: [2048, 4096], ["TLSv1.2", "TLSv1.3"])
  func usualGroups(_ bits: Int, _ version: String) async throws {
    let origin = try await origin(bits, version)
    defer { origin.stop() }
    let response = try await answer(of: origin)
    #expect(response.status == 200 && response.tls?.version == version)
  }

  @Test(
    "a TLS 1.3 handshake fails if the server accepts only a group of over 4096 bits", arguments: [6144, 8192])
  func largeGroupsInTLS13(_ bits: Int) async throws {
    let origin = try await origin(bits, "TLSv1.3")
    defer { origin.stop() }
    let error = await #expect(throws: NetOptError.self) { try await answer(of: origin) }
    #expect(error?.code == .tlsFailed)
  }

  @Test("a TLS 1.2 handshake with a group of 8192 bits fails, and the error says why")
  func largeGroupInTLS12() async throws {
    let origin = try await origin(8192)
    defer { origin.stop() }
    let error = await #expect(throws: NetOptError.self) { try await answer(of: origin) }
    #expect(error?.code == .tlsFailed)
    #expect(error?.message.contains("or has more than 4096 bits") == true, "\(error?.message ?? "")")
  }
}
