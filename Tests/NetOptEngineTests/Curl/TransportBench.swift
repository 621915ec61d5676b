import NetOptCore
import NetOptEngine
import NetOptTestSupport
import TestTools

/// An event loop with a transport, for one test.
struct TransportBench {
  let loop: EventLoop
  let transport: CurlTransport

  /// - Parameters:
  ///   - answers: the addresses that DNS returns for every name. Default: none, so every look-up fails.
  ///   - change: changes settings from their defaults.
  init(answers: [IPAddress] = [], _ change: (inout CurlConfiguration) -> Void = { _ in }) async throws {
    try await self.init(legs: FixedAnswers(addresses: answers), change)
  }

  /// - Parameters:
  ///   - legs: the source that performs DNS look-ups and makes the legs from their answers.
  ///   - change: changes settings from their defaults.
  init(legs: any LegSource, _ change: (inout CurlConfiguration) -> Void = { _ in }) async throws {
    var configuration = CurlConfiguration()
    configuration.tls.authorities = try AuthorityFile.read(try await TestCertificates.authorityFile())
    change(&configuration)
    loop = try EventLoop()
    transport = try CurlTransport(configuration, legs: legs, loop: loop)
  }

  /// Shuts the transport down and stops the loop. The test must call this.
  func end() async {
    await transport.shutdown()
    loop.stop()
  }

  /// Returns a plan for a request to a URL. The plan has a leg for each address, in this order, and then a
  /// leg for DNS if `dns` is true. The source of the addresses is the list.
  func plan(_ url: HTTPURL, _ addresses: [IPAddress], dns: Bool = false) -> RoutePlan {
    var legs = addresses.map { RoutePlan.Leg(.address($0), source: .list) }
    if dns { legs.append(RoutePlan.Leg(.dns, source: .dns)) }
    return RoutePlan(
      origin: url.origin, policy: .fastest,
      candidates: addresses.map { RouteReport.Candidate($0, score: nil, source: .list) }, legs: legs,
      multiplexes: url.origin.scheme == .https)
  }

  /// Sends a request along the plan that `plan` makes of the addresses. The call has a deadline if the
  /// request's options have a timeout.
  func execute(
    _ request: NetOptRequest, _ addresses: [IPAddress], dns: Bool = false
  ) async throws(NetOptError) -> NetOptResponse {
    let now = loop.now()
    let context = CallContext(id: 1, started: now, deadline: request.options.timeout.map { now + $0 })
    return try await transport.execute(request, along: plan(request.url, addresses, dns: dns), in: context)
  }
}

/// A source of legs whose DNS look-ups find the same addresses for every name. Without addresses, the
/// look-ups fail with `nameNotFound`.
struct FixedAnswers: LegSource {
  let addresses: [IPAddress]

  func legs(for origin: Origin, fresh: Bool) async throws(NetOptError) -> [RoutePlan.Leg] {
    guard !addresses.isEmpty else {
      throw NetOptError(.nameNotFound, phase: .resolve, "\(origin.host) is unknown here")
    }
    return addresses.map { RoutePlan.Leg(.address($0), source: .dns) }
  }
}

/// Returns the error that the body throws, or `nil` if it throws none.
func failure(_ body: () async throws(NetOptError) -> Void) async -> NetOptError? {
  do throws(NetOptError) {
    try await body()
    return nil
  } catch {
    return error
  }
}
