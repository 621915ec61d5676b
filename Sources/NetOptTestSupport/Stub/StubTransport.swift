public import NetOptCore

/// A transport without a network: a script says how each address behaves, and the race of `NetOptCore` decides which
/// leg starts when and which one sends, as in the real transport.
///
/// Over `https`, unless HTTP/1.1 was asked for, a connection carries many requests: once opened, it stays ready, and
/// later calls to the address send at once. Over HTTP/1.1 it is ready again when a body has been read to its end. A
/// request with a stream as its body has been read whole when it counts as
/// sent. Nothing is retried and no redirect followed, as by every transport.
public final class StubTransport: Transport {
  /// A request that was sent.
  public struct Received: Sendable {
    /// The request.
    public let request: NetOptRequest
    /// Its body.
    public let body: [UInt8]
    /// The address that received it; `nil` when it went through a proxy.
    public let address: IPAddress?
  }

  /// What the script knows, and a connection leads to.
  enum Place: Hashable {
    case address(IPAddress)
    case proxy(String)
    /// What is no place, before the resolver has answered.
    case name

    init(_ target: RoutePlan.Leg.Target, of plan: RoutePlan) {
      self =
        switch target {
        case .address(let address): .address(address)
        case .proxy: .proxy(plan.proxy ?? "")
        case .dns: .name
        }
    }
  }

  /// What tells open connections apart.
  struct Connection: Hashable {
    let origin: Origin
    let place: Place
    let isVerified: Bool
    /// Whether it carries many requests at once: HTTP/2.
    let multiplexes: Bool
  }

  struct State {
    var outcomes: [Place: StubOutcome]
    /// How many connections are open and ready for a request.
    var pool: [Connection: Int] = [:]
    var received: [Received] = []
    var opened: [IPAddress] = []
    var underWay = 0
    var openBodies = 0
    var isShutDown = false
  }

  let state: AsyncCondition<State>
  let resolver: any Resolver
  let timeSource: any TimeSource

  /// Makes a transport.
  ///
  /// - Parameters:
  ///   - script: how each address behaves; others refuse connections.
  ///   - proxies: how each proxy behaves, by its URL.
  ///   - resolver: what legs that look the name up ask. Default: one that finds nothing.
  ///   - timeSource: the clock that its times and timers are on; `nil` for the system's.
  public convenience init(
    _ script: [IPAddress: StubOutcome] = [:], proxies: [String: StubOutcome] = [:],
    resolver: StubResolver = StubResolver(), timeSource: ManualTimeSource? = nil
  ) {
    self.init(
      script, proxies: proxies, resolver: resolver as any Resolver,
      timeSource: timeSource ?? SystemTimeSource() as any TimeSource)
  }

  /// Makes a transport with a resolver and a clock of any kind.
  package init(
    _ script: [IPAddress: StubOutcome] = [:], proxies: [String: StubOutcome] = [:],
    resolver: any Resolver, timeSource: any TimeSource
  ) {
    var outcomes: [Place: StubOutcome] = [:]
    for (address, outcome) in script { outcomes[.address(address)] = outcome }
    for (proxy, outcome) in proxies { outcomes[.proxy(proxy)] = outcome }
    state = AsyncCondition(State(outcomes: outcomes))
    self.resolver = resolver
    self.timeSource = timeSource
  }

  /// Changes how an address behaves from now on, and closes the connections to it that nobody uses.
  public func set(_ outcome: StubOutcome, for address: IPAddress) {
    state.update { state in
      state.outcomes[.address(address)] = outcome
      state.pool = state.pool.filter { $0.key.place != .address(address) }
    }
  }

  /// The requests that were sent, in that order.
  public var received: [Received] { state.state.received }

  /// The addresses to which connections were attempted, in that order. A pooled connection is not opened again.
  public var opened: [IPAddress] { state.state.opened }

  /// How many connections are open and ready for a request.
  public var pooled: Int { state.state.pool.values.reduce(0, +) }

  /// How many bodies were neither read to their end nor let go of.
  public var openBodies: Int { state.state.openBodies }

  /// Performs a request along a plan's legs, by the script.
  package func execute(
    _ request: NetOptRequest, along plan: RoutePlan, in context: CallContext
  ) async throws(NetOptError) -> NetOptResponse {
    guard begin() else { throw Self.shutDownError(RouteReport(plan: plan, legs: [])) }
    defer { end() }
    return try await StubCall.run(request, along: plan, in: context, on: self)
  }

  /// Opens a connection to an endpoint, by the script.
  package func connect(
    to endpoint: IPEndpoint, of origin: Origin, within limit: Duration, keep: Bool
  ) async throws(LegError) -> ConnectReport {
    guard begin() else { throw Self.shutDownLegError }
    defer { end() }
    let connection = Connection(
      origin: origin, place: .address(endpoint.address), isVerified: true,
      multiplexes: origin.scheme == .https)
    let leg = StubLeg(connection: connection, limit: limit, isKept: keep)
    return try await leg.connect(on: self)
  }

  /// Fails what is under way and returns when nothing of it is left.
  package func shutdown() async {
    state.update { state in
      state.isShutDown = true
      state.pool = [:]
    }
    _ = await state.wait { $0.underWay == 0 }
  }

  /// Counts a call that begins; false after shutdown.
  func begin() -> Bool {
    state.update { state in
      if !state.isShutDown { state.underWay += 1 }
      return !state.isShutDown
    }
  }

  func end() { state.update { $0.underWay -= 1 } }

  /// Gives out an open connection, when there is one.
  func take(_ connection: Connection) -> Bool {
    state.update { state in
      let count = state.pool[connection] ?? 0
      if count > 0, !connection.multiplexes { state.pool[connection] = count - 1 }
      return count > 0
    }
  }

  /// Keeps a connection that is ready for a request. Of those that carry many, one is enough.
  func keep(_ connection: Connection) {
    state.update { state in
      guard !state.isShutDown else { return }
      state.pool[connection] = connection.multiplexes ? 1 : (state.pool[connection] ?? 0) + 1
    }
  }

  static let shutDownLegError = LegError(LegFailure(.other, "the transport has been shut down"))

  static func shutDownError(_ route: RouteReport?) -> NetOptError {
    NetOptError(.shutDown, phase: .send, "the transport has been shut down", route: route)
  }
}
