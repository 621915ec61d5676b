import NetOptCore
import NetOptEngine
import NetOptTestSupport
import TestTools
import Testing

/// The promises of the `Transport` protocol, kept by the one on libcurl against servers on loopback.
@Suite struct CurlConformanceTests {
  @Test(arguments: TransportConformance.allCases)
  func keepsItsPromises(_ promise: TransportConformance) async throws { try await check(promise, .automatic) }

  @Test(arguments: TransportConformance.allCases)
  func keepsItsPromisesOverHTTP1(_ promise: TransportConformance) async throws {
    try await check(promise, .http1)
  }

  private func check(_ promise: TransportConformance, _ version: RequestOptions.Version) async throws {
    let loop = try EventLoop()
    defer { loop.stop() }
    try await promise.check {
      try await LoopbackConformanceBench(version: version) { setting in
        var configuration = CurlConfiguration()
        configuration.caFile = setting.authorityFile
        return try CurlTransport(configuration, legs: ResolvedLegs(resolver: setting.resolver), loop: loop)
      }
    }
  }
}

/// The answers of a resolver as legs, in its order.
private struct ResolvedLegs: LegSource {
  let resolver: StubResolver

  func legs(for origin: Origin, fresh: Bool) async throws(NetOptError) -> [RoutePlan.Leg] {
    try await resolver.resolve(origin.host, fresh: fresh).addresses.map {
      RoutePlan.Leg(.address($0), source: .dns)
    }
  }
}
