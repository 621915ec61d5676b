import NetOptCore
import NetOptEngine
import NetOptTestSupport
import TestTools

/// A loop with a transport on it, for one test.
struct TransportBench {
  let loop: EventLoop
  let transport: CurlTransport

  /// - Parameters:
  ///   - answers: what DNS knows, whatever the name.
  ///   - change: settings other than the defaults.
  init(answers: [IPAddress] = [], _ change: (inout CurlConfiguration) -> Void = { _ in }) async throws {
    try await self.init(legs: FixedAnswers(addresses: answers), change)
  }

  /// - Parameters:
  ///   - legs: what a look-up becomes.
  ///   - change: settings other than the defaults.
  init(legs: any LegSource, _ change: (inout CurlConfiguration) -> Void = { _ in }) async throws {
    var configuration = CurlConfiguration()
    configuration.caFile = try await TestCertificates.authorityFile()
    change(&configuration)
    loop = try EventLoop()
    transport = try CurlTransport(configuration, legs: legs, loop: loop)
  }

  func end() async {
    await transport.shutdown()
    loop.stop()
  }

  /// A plan of the list's addresses in this order, and then DNS.
  func plan(_ url: HTTPURL, _ addresses: [IPAddress], dns: Bool = false) -> RoutePlan {
    var legs = addresses.map { RoutePlan.Leg(.address($0), source: .list) }
    if dns { legs.append(RoutePlan.Leg(.dns, source: .dns)) }
    return RoutePlan(
      origin: url.origin, policy: .fastest,
      candidates: addresses.map { RouteReport.Candidate($0, score: nil, source: .list) }, legs: legs,
      multiplexes: url.origin.scheme == .https)
  }

  func execute(
    _ request: NetOptRequest, _ addresses: [IPAddress], dns: Bool = false
  ) async throws(NetOptError) -> NetOptResponse {
    let now = loop.now()
    let context = CallContext(id: 1, started: now, deadline: request.options.timeout.map { now + $0 })
    return try await transport.execute(request, along: plan(request.url, addresses, dns: dns), in: context)
  }
}

/// A name system that gives the same answer to everyone.
struct FixedAnswers: LegSource {
  let addresses: [IPAddress]

  func legs(for origin: Origin, fresh: Bool) async throws(NetOptError) -> [RoutePlan.Leg] {
    guard !addresses.isEmpty else {
      throw NetOptError(.nameNotFound, phase: .resolve, "\(origin.host) is unknown here")
    }
    return addresses.map { RoutePlan.Leg(.address($0), source: .dns) }
  }
}

/// The error that the body throws.
func failure(_ body: () async throws(NetOptError) -> Void) async -> NetOptError? {
  do throws(NetOptError) {
    try await body()
    return nil
  } catch {
    return error
  }
}
