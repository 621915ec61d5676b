import NetOpt
import NetOptCore
import NetOptRouting
import NetOptTestSupport
import TestTools
import Testing

/// Endpoints whose certificates are wrong for a short time, for example behind a captive portal.
@Suite struct CertificateReturnTests {
  /// An endpoint that presents the certificate of another host.
  private static let portal = StubOutcome.certificate(names: ["portal.test"])

  @Test(
    "a client uses the list again within seconds after the certificates of all its servers are right")
  func allServers() async throws {
    let addresses = IPAddress.freshLoopback(3)
    let listed = Array(addresses[..<2])
    let port = try FreePort.find(on: addresses)
    let wrong = try await TestCertificates.certificate(for: ["portal.test"])
    let impostor = try await NginxOrigin.start(
      listed.map { NginxOrigin.Listener($0, .certificate(wrong)) }, port: port)
    defer { impostor.stop() }
    let other = try await NginxOrigin.start(for: [Lab.host], on: [addresses[2]], port: port)
    defer { other.stop() }
    let dns = try await DNSServer.start([Lab.host: [addresses[2]]])
    defer { dns.stop() }
    var configuration = ClientConfiguration()
    let endpoints = listed.map { ListedEndpoint($0) }
    configuration.list = .list(EndpointList(hosts: [Lab.host: HostEntry(port: port, endpoints: endpoints)]))
    configuration.tls.caFile = try await TestCertificates.authorityFile()
    configuration.dns.servers = [dns.endpoint.description]
    configuration.proxy = .none
    configuration.rankingHistory = .none
    let client = try NetOptClient(configuration)
    let request = try NetOptRequest(.get, "https://\(Lab.host):\(port)/")

    var response = try await client.execute(request)
    while response.route.fallback != .excluded { response = try await client.execute(request) }
    #expect(response.remote?.address == addresses[2])
    for candidate in response.route.plan.candidates {
      let reason = try #require(candidate.excluded)
      if case .certificate(let failure, _, let byProbe) = reason {
        #expect(failure.kind == .certificateName(presented: ["portal.test"]) && byProbe)
      } else {
        Issue.record("it is excluded for another reason: \(reason)")
      }
    }
    #expect(try impostor.accessLog().isEmpty)
    impostor.stop()
    let mended = try await NginxOrigin.start(for: [Lab.host], on: listed, port: port)
    defer { mended.stop() }
    let start = SystemTimeSource().now()
    try await wait(for: "the list", within: .seconds(30)) {
      response = try await client.execute(request)
      return response.remote.map { listed.contains($0.address) } ?? false
    }
    // The client waits 1 s before it checks a certificate again, and doubles the wait after each failed
    // check. The certificates were wrong for 1 or 2 s, so the wait is 4 s at most. The rest is for a busy
    // machine.
    #expect(SystemTimeSource().now() - start < .seconds(10))
    #expect(response.route.source == .list)
    await client.shutdown()
  }

  @Test("background probes find that certificates are right again, without a request")
  func probes() async throws {
    let lab = try StubLab([Self.portal, Self.portal])
    let request = try lab.request()
    // DNS does not know the host, so the request fails.
    await #expect(throws: NetOptError.self) { _ = try await lab.client.execute(request) }
    for address in lab.addresses { lab.transport.set(.respond(200), for: address) }
    let before = lab.transport.opened.count
    // Each endpoint gets one handshake and two quick samples, and no request.
    try await wait(for: "the probes of both", within: .seconds(20)) {
      lab.transport.opened.count == before + 6
    }
    #expect(lab.receivers.isEmpty)
    let response = try await lab.client.execute(request)
    #expect(response.route.legs.map(\.outcome) == [.won])
    #expect(response.route.plan.candidates.allSatisfy { $0.excluded == nil })
    await lab.client.shutdown()
  }

  @Test("without background probes, requests find that certificates are right again")
  func requests() async throws {
    let lab = try StubLab([Self.portal, Self.portal]) { $0.probing.inBackground = false }
    let request = try lab.request()
    var error = await #expect(throws: NetOptError.self) { _ = try await lab.client.execute(request) }
    error = await #expect(throws: NetOptError.self) { _ = try await lab.client.execute(request) }
    let reasons = error?.route?.plan.candidates.map(\.excluded) ?? []
    #expect(
      reasons.count == 2
        && reasons.allSatisfy {
          if case .certificate(_, let wait?, byProbe: false)? = $0 { wait > .zero } else { false }
        },
      "\(reasons)")
    for address in lab.addresses { lab.transport.set(.respond(200), for: address) }
    try await wait(for: "an answer", within: .seconds(20)) {
      (try? await lab.client.execute(request))?.status == 200
    }
    #expect(lab.receivers.count == 1)
    await lab.client.shutdown()
  }

  @Test("an endpoint with a wrong certificate gets only unverified requests, even after such a request")
  func unverified() async throws {
    // The other endpoint is farther away, so that the client tries the first as soon as it may.
    let far = StubOutcome.respond(200).taking(connect: .milliseconds(50))
    let lab = try StubLab([Self.portal, far]) { $0.probing.inBackground = false }
    let request = try lab.request { $0.options.connection = .fresh }
    #expect(try await lab.client.execute(request).remote?.address == lab.addresses[1])
    let careless = try lab.request { $0.options.verification = .none }
    let pinned = try lab.request {
      $0.options.verification = .none
      $0.options.routing = .pinned(lab.addresses[0])
    }
    for request in [careless, pinned] { _ = try await lab.client.execute(request) }
    let before = lab.receivers.filter { $0 == lab.addresses[0] }.count
    #expect(before > 0)
    // A verified request goes to the first endpoint only when a check of the certificate is due. Its leg is
    // then the check, which fails. The test repeats its requests until this happens.
    try await wait(for: "a check", within: .seconds(20)) {
      _ = try await lab.client.execute(careless)
      let response = try await lab.client.execute(request)
      #expect(response.remote?.address == lab.addresses[1])
      return response.route.legs.contains { $0.outcome == .failed }
    }
    let received = lab.transport.received.filter { $0.address == lab.addresses[0] }
    #expect(received.allSatisfy { $0.request.options.verification == .none })
    await lab.client.shutdown()
  }
}
