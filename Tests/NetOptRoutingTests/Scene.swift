import NetOptCore
import Testing

@testable import NetOptRouting

extension RoutePlan {
  /// The addresses of the legs before the DNS leg, in order.
  var addresses: [IPAddress] { legs.prefix { $0.target != .dns }.compactMap(\.address) }

  /// The addresses of the legs after the DNS leg, without those of `addressesStartingAlone`.
  var lastResorts: [IPAddress] {
    legs.drop { $0.target != .dns }.filter { !$0.startsAlone }.compactMap(\.address)
  }

  /// The addresses of the legs that start only when no other leg is under way.
  var addressesStartingAlone: [IPAddress] { legs.filter(\.startsAlone).compactMap(\.address) }

  /// Whether the plan has a DNS leg.
  var endsInDNS: Bool { legs.contains { $0.target == .dns } }

  /// Why the plan excludes an endpoint; `nil` when the plan does not exclude it.
  func exclusion(of address: IPAddress) -> ExclusionReason? {
    candidates.first { $0.address == address }?.excluded
  }
}

/// A planner with one listed host, and its clock.
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

  /// Makes a plan, and returns the addresses of its legs before the DNS leg.
  mutating func order() -> [IPAddress] { plan().addresses }

  mutating func wait(_ seconds: Double) { now = now + .seconds(seconds) }

  /// Moves the clock to the moment at which the next probe is due.
  mutating func waitForProbe() throws {
    let next = planner.nextProbe(after: now)
    now = try #require(next)
  }

  /// Records a successful probe that took this long. For `https`, TCP and TLS took half of the time each. For
  /// `http`, TCP took all of it.
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

  /// Records a call that followed a plan.
  mutating func call(_ plan: RoutePlan, _ legs: [RouteReport.Leg]) {
    planner.record(RouteReport(plan: plan, legs: legs), at: now)
  }

  func state(_ address: IPAddress) -> CircuitState? {
    planner.status(of: origin, at: now).first { $0.endpoint.address == address }?.state
  }
}

extension RouteReport.Leg {
  /// A leg that was ready `milliseconds` after its start. TCP took half of this time.
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

  /// A leg that was cancelled while it was under way, because another leg won or the call ended.
  static func cancelled(
    _ address: IPAddress, from started: Double = 0, until ended: Double, connected: Double? = nil,
    source: AddressSource = .list
  ) -> Self {
    Self(
      address: address, source: source, started: .milliseconds(started),
      connected: connected.map { .milliseconds($0) }, ended: .milliseconds(ended), outcome: .cancelled)
  }
}
