import NetOptCore
import NetOptEngine
import NetOptTestSupport
import TestTools
import Testing

/// Checks `CurlTransport` against the promises of the `Transport` protocol, with servers on loopback.
@Suite struct CurlConformanceTests {
  @Test(
    "CurlTransport keeps each promise of the Transport protocol", arguments: TransportConformance.allCases)
  func keepsPromises(_ promise: TransportConformance) async throws { try await check(promise, .automatic) }

  @Test(
    "CurlTransport keeps each promise of the Transport protocol over HTTP/1.1",
    arguments: TransportConformance.allCases)
  func keepsPromisesOverHTTP1(_ promise: TransportConformance) async throws {
    try await check(promise, .http1)
  }

  /// Checks one promise with a new transport and new servers. All requests have this HTTP version.
  private func check(_ promise: TransportConformance, _ version: RequestOptions.Version) async throws {
    let loop = try EventLoop()
    defer { loop.stop() }
    try await promise.check {
      try await LoopbackConformanceBench(version: version) { setting in
        var configuration = CurlConfiguration()
        configuration.tls.authorities = try AuthorityFile.read(setting.authorityFile)
        return try CurlTransport(configuration, legs: ResolvedLegs(resolver: setting.resolver), loop: loop)
      }
    }
  }
}

/// A source of legs that has one leg for each address of a resolver, in the same order.
private struct ResolvedLegs: LegSource {
  let resolver: StubResolver

  func legs(for origin: Origin, fresh: Bool) async throws(NetOptError) -> [RoutePlan.Leg] {
    try await resolver.resolve(origin.host, fresh: fresh).addresses.map {
      RoutePlan.Leg(.address($0), source: .dns)
    }
  }
}
