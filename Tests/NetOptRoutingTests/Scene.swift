import NetOptCore
import Testing

@testable import NetOptRouting

extension RoutePlan {
  /// The addresses of its legs in their order, up to DNS.
  var addresses: [IPAddress] { legs.prefix { $0.target != .dns }.compactMap(\.address) }

  /// The addresses that are tried after DNS.
  var lastResorts: [IPAddress] {
    legs.drop { $0.target != .dns }.filter { !$0.isLast }.compactMap(\.address)
  }

  /// The addresses that are tried when everything else has failed.
  var lasts: [IPAddress] { legs.filter(\.isLast).compactMap(\.address) }

  /// Whether DNS is its last leg but for the last resorts.
  var endsInDNS: Bool { legs.contains { $0.target == .dns } }

  /// Why an endpoint is left out.
  func exclusion(of address: IPAddress) -> ExclusionReason? {
    candidates.first { $0.address == address }?.excluded
  }
}

/// A planner with one listed host, and a clock.
struct Scene {
  var planner: RoutePlanner
  var now = MonotonicInstant.at(0)
  let origin: Origin

  init(
    _ addresses: [IPAddress], scheme: Origin.Scheme = .https, configuration: RoutingConfiguration = .init(),
    seed: UInt64 = 1
  ) {
    self.init(addresses.map { ListedEndpoint($0) }, scheme: scheme, configuration: configuration, seed: seed)
  }

  init(
    _ endpoints: [ListedEndpoint], scheme: Origin.Scheme = .https,
    configuration: RoutingConfiguration = .init(), seed: UInt64 = 1
  ) {
    let list = EndpointList(hosts: [
      "a.example": HostEntry(port: scheme.defaultPort, endpoints: endpoints)
    ])
    planner = RoutePlanner(list: list, configuration: configuration, seed: seed)
    origin = Origin(scheme, host: "a.example")
  }

  mutating func plan(_ options: RequestOptions = RequestOptions()) -> RoutePlan {
    planner.plan(for: origin, options: options, now: now, wall: today)
  }

  /// The addresses of a plan's legs.
  mutating func order() -> [IPAddress] { plan().addresses }

  mutating func wait(_ seconds: Double) { now = now + .seconds(seconds) }

  /// Waits until the next probe is due.
  mutating func waitForProbe() throws {
    let next = planner.nextProbe(after: now)
    now = try #require(next)
  }

  /// A probe that took this long, half of it for TCP.
  mutating func probe(_ address: IPAddress, milliseconds: Double) {
    let half = Duration.milliseconds(milliseconds / 2)
    let isSecure = origin.scheme == .https
    let report = ConnectReport(
      connect: isSecure ? half : .milliseconds(milliseconds), tls: isSecure ? half : nil)
    planner.record(probe: .success(report), of: address, for: origin, at: now)
  }

  mutating func probe(_ address: IPAddress, fails failure: LegFailure) {
    planner.record(probe: .failure(LegError(failure)), of: address, for: origin, at: now)
  }

  /// A call along a plan.
  mutating func call(_ plan: RoutePlan, _ legs: [RouteReport.Leg]) {
    planner.record(RouteReport(plan: plan, legs: legs), at: now)
  }

  func state(_ address: IPAddress) -> CircuitState? {
    planner.status(of: origin, at: now).first { $0.endpoint.address == address }?.state
  }
}

extension RouteReport.Leg {
  /// A leg that was ready after this time, half of it for TCP.
  static func ready(
    _ address: IPAddress, _ outcome: RouteReport.Outcome = .won, from started: Double = 0,
    milliseconds: Double, source: AddressSource = .list
  ) -> Self {
    let end = Duration.milliseconds(started + milliseconds)
    return Self(
      address: address, source: source, started: .milliseconds(started),
      connected: .milliseconds(started + milliseconds / 2), secured: end, ended: end, outcome: outcome)
  }

  /// A leg that failed.
  static func failed(
    _ address: IPAddress, _ failure: LegFailure, after milliseconds: Double = 1,
    source: AddressSource = .list
  ) -> Self {
    Self(
      address: address, source: source, started: .zero, ended: .milliseconds(milliseconds), outcome: .failed,
      failure: failure)
  }

  /// A leg that was under way when the call was decided.
  static func cancelled(
    _ address: IPAddress, from started: Double = 0, until ended: Double, connected: Double? = nil,
    source: AddressSource = .list
  ) -> Self {
    Self(
      address: address, source: source, started: .milliseconds(started),
      connected: connected.map { .milliseconds($0) }, ended: .milliseconds(ended), outcome: .cancelled)
  }
}
