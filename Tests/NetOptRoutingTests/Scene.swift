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

  /// Whether the plan has a DNS leg. Last resorts may follow it.
  var endsInDNS: Bool { legs.contains { $0.target == .dns } }

  /// Why the plan excludes an endpoint; `nil` when the plan does not exclude it.
  func exclusion(of address: IPAddress) -> ExclusionReason? {
    candidates.first { $0.address == address }?.excluded
  }
}

/// A planner whose list has the one host `a.example`, and the clock of a test. The functions plan and record
/// at the moment `now`.
struct Scene {
  var planner: RoutePlanner
  /// The present moment. It stands still until a test moves it.
  var now = MonotonicInstant.at(0)
  /// The origin of the listed host: `a.example` on the default port of the scheme.
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

  /// Makes the plan for a request to `origin`.
  mutating func plan(_ options: RequestOptions = RequestOptions()) -> RoutePlan {
    planner.plan(for: origin, options: options, now: now, wall: today)
  }

  /// Makes a plan, and returns the addresses of its legs before the DNS leg.
  mutating func order() -> [IPAddress] { plan().addresses }

  /// Moves the clock forward.
  mutating func wait(_ seconds: Double) { now = now + .seconds(seconds) }

  /// Moves the clock to the moment at which the next probe is due. Throws when no origin is in use, so that
  /// no probe will be due.
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

  /// Records a failed probe.
  mutating func probe(_ address: IPAddress, fails failure: LegFailure) {
    planner.record(probe: .failure(LegError(failure)), of: address, for: origin, at: now)
  }

  /// Records a call that followed a plan and had these legs. The outcome of the request is not recorded: a
  /// leg that won counts as a success.
  mutating func call(_ plan: RoutePlan, _ legs: [RouteReport.Leg]) {
    planner.record(RouteReport(plan: plan, legs: legs), at: now)
  }

  /// Whether requests use an endpoint; `nil` for an address that the list does not contain.
  func state(_ address: IPAddress) -> CircuitState? {
    planner.status(of: origin, at: now).first { $0.endpoint.address == address }?.state
  }
}

extension RouteReport.Leg {
  /// A leg whose connection was ready. TCP took half of the time, and TLS the other half.
  ///
  /// - Parameters:
  ///   - outcome: whether the leg won the race, or lost because another leg was ready before.
  ///   - started: when the leg started, in milliseconds after the start of the call.
  ///   - milliseconds: the time from the start of the leg until its connection was ready.
  static func ready(
    _ address: IPAddress, _ outcome: RouteReport.Outcome = .won, from started: Double = 0,
    milliseconds: Double, source: AddressSource = .list
  ) -> Self {
    let end = Duration.milliseconds(started + milliseconds)
    return Self(
      address: address, source: source, started: .milliseconds(started),
      connected: .milliseconds(started + milliseconds / 2), secured: end, ended: end, outcome: outcome)
  }

  /// A leg that started with the call and failed `milliseconds` later, before TCP was connected.
  static func failed(
    _ address: IPAddress, _ failure: LegFailure, after milliseconds: Double = 1,
    source: AddressSource = .list
  ) -> Self {
    Self(
      address: address, source: source, started: .zero, ended: .milliseconds(milliseconds), outcome: .failed,
      failure: failure)
  }

  /// A leg that was cancelled while it was under way, because another leg won or the call ended. All times
  /// are in milliseconds after the start of the call.
  ///
  /// - Parameter connected: when TCP was connected; `nil` when it was not.
  static func cancelled(
    _ address: IPAddress, from started: Double = 0, until ended: Double, connected: Double? = nil,
    source: AddressSource = .list
  ) -> Self {
    Self(
      address: address, source: source, started: .milliseconds(started),
      connected: connected.map { .milliseconds($0) }, ended: .milliseconds(ended), outcome: .cancelled)
  }
}
