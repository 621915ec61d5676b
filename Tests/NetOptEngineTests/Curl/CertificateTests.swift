import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@Suite struct CertificateTests {
  /// Starts an origin with a certificate for a host and its subdomains.
  private func origin(_ kind: TestCertificates.Kind, for name: String) async throws -> NginxOrigin {
    let certificate = try await TestCertificates.certificate(kind, for: [name, "*.\(name)"])
    return try await NginxOrigin.start([
      NginxOrigin.Listener(IPAddress.freshLoopback(1)[0], .certificate(certificate))
    ])
  }

  @Test("the error for a certificate of another host names both hosts, and no request is sent")
  func certificateOfAnotherHost() async throws {
    let origin = try await origin(.valid, for: "other.test")
    defer { origin.stop() }
    let bench = try await TransportBench()
    let request = try NetOptRequest(.get, "https://api.test:\(origin.port)/")
    let error = await failure { () throws(NetOptError) in
      _ = try await bench.execute(request, origin.endpoints.map(\.address))
    }
    #expect(error?.code == .certificateName)
    #expect(error?.phase == .tls)
    #expect(error?.endpoint == origin.endpoints[0])
    #expect(error?.isRetryable == false)
    #expect(error?.message.contains("other.test, *.other.test") == true)
    #expect(error?.message.contains("not for api.test") == true)
    let leg = try #require(error?.route?.legs.first)
    #expect(leg.failure?.kind == .certificateName(presented: ["other.test", "*.other.test"]))
    #expect(try origin.accessLog().isEmpty)
    await bench.end()
  }

  @Test(
    "an expired or untrusted certificate has its own error code, and no request is sent",
    arguments: [
      (TestCertificates.Kind.expired, NetOptError.Code.certificateExpired),
      (.selfSigned, .certificateUntrusted), (.otherAuthority, .certificateUntrusted),
    ])
  func badCertificates(_ kind: TestCertificates.Kind, _ code: NetOptError.Code) async throws {
    let origin = try await origin(kind, for: "api.test")
    defer { origin.stop() }
    let bench = try await TransportBench()
    let request = try NetOptRequest(.get, "https://api.test:\(origin.port)/")
    let error = await failure { () throws(NetOptError) in
      _ = try await bench.execute(request, origin.endpoints.map(\.address))
    }
    #expect(error?.code == code)
    #expect(try origin.accessLog().isEmpty)
    await bench.end()
  }

  @Test("an unverified response says so, and a verified request does not reuse its connection")
  func withoutVerification() async throws {
    let origin = try await origin(.valid, for: "other.test")
    defer { origin.stop() }
    let bench = try await TransportBench()
    var request = try NetOptRequest(.get, "https://api.test:\(origin.port)/")
    request.options.verification = .none
    let response = try await bench.execute(request, origin.endpoints.map(\.address))
    #expect(response.tls?.verified == false)
    _ = try await response.body.collect(upTo: 100)
    // A request with full verification does not reuse the unverified connection.
    request.options.verification = .full
    let error = await failure { () throws(NetOptError) in
      _ = try await bench.execute(request, origin.endpoints.map(\.address))
    }
    #expect(error?.code == .certificateName)
    #expect(try await origin.waitForLog(1).count == 1)
    await bench.end()
  }

  @Test("a certificate error takes precedence over a DNS look-up that finds no other address")
  func certificateErrorAndDNS() async throws {
    let addresses = IPAddress.freshLoopback(2)
    let certificate = try await TestCertificates.certificate(.valid, for: ["other.test"])
    let origin = try await NginxOrigin.start([NginxOrigin.Listener(addresses[0], .certificate(certificate))])
    defer { origin.stop() }
    let bench = try await TransportBench()
    let request = try NetOptRequest(.get, "https://api.test:\(origin.port)/")
    // The first address has the certificate of another host, the second refuses connections, and DNS finds no
    // address.
    for order in [addresses, addresses.reversed()] {
      let error = await failure { () throws(NetOptError) in
        _ = try await bench.execute(request, order, dns: true)
      }
      #expect(error?.code == .certificateName)
      #expect(error?.endpoint == IPEndpoint(addresses[0], port: origin.port))
      #expect(error?.isRetryable == false)
      let message = error?.message ?? ""
      #expect(
        message.contains(
          "is for other.test, not for api.test; besides, \(addresses[1]) refused the connection"))
      #expect(message.hasSuffix("DNS has no other address for the name"), "\(message)")
    }
    await bench.end()
  }

  @Test("the error for an expired certificate says that it has expired")
  func expired() async throws {
    let origin = try await origin(.expired, for: "api.test")
    defer { origin.stop() }
    let bench = try await TransportBench()
    let request = try NetOptRequest(.get, "https://api.test:\(origin.port)/")
    let error = await failure { () throws(NetOptError) in
      _ = try await bench.execute(request, origin.endpoints.map(\.address))
    }
    #expect(error?.message.contains("has expired; renew it") == true)
    await bench.end()
  }

  @Test("without a CA file, the certificate of a private authority is untrusted")
  func privateAuthority() async throws {
    let origin = try await origin(.valid, for: "api.test")
    defer { origin.stop() }
    let bench = try await TransportBench { $0.tls.authorities = nil }
    let request = try NetOptRequest(.get, "https://api.test:\(origin.port)/")
    let error = await failure { () throws(NetOptError) in
      _ = try await bench.execute(request, origin.endpoints.map(\.address))
    }
    #expect(error?.code == .certificateUntrusted)
    await bench.end()
  }
}
