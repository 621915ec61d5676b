public import NetOptCore

/// A transport without a network. A script decides the behaviour of each address. The race of `NetOptCore`
/// decides when each leg starts and which leg sends the request, as in the real transport.
///
/// Over `https`, a connection carries many requests, unless the request asks for HTTP/1.1. Once open, this
/// connection stays ready, and later calls to the address send at once. An HTTP/1.1 connection is ready again
/// when a body has been read to its end. A request with a stream as its body counts as sent when the
/// transport has read the whole body. Like every transport, the stub does not retry and does not follow
/// redirects.
public final class StubTransport: Transport {
  /// A request that was sent.
  public struct Received: Sendable {
    /// The request.
    public let request: NetOptRequest
    /// Its body.
    public let body: [UInt8]
    /// The address that received the request; `nil` when a proxy received it.
    public let address: IPAddress?
  }

  /// The destination of a connection, and the key of the script.
  enum Destination: Hashable {
    case address(IPAddress)
    case proxy(String)
    /// A host name without an address, before the resolver has responded. No connection leads there.
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

  /// The properties that distinguish open connections.
  struct Connection: Hashable {
    let origin: Origin
    let destination: Destination
    let isVerified: Bool
    /// Whether the connection carries many requests at once (HTTP/2).
    let multiplexes: Bool
  }

  struct State {
    var outcomes: [Destination: StubOutcome]
    /// The number of connections that are open and ready for a request.
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

  /// Creates a transport.
  ///
  /// - Parameters:
  ///   - script: the behaviour of each address. Other addresses refuse connections.
  ///   - proxies: the behaviour of each proxy, by its URL.
  ///   - resolver: the resolver for legs that look up the name. Default: a resolver that finds no name.
  ///   - timeSource: the clock for times and timers; `nil` for the clock of the system.
  public convenience init(
    _ script: [IPAddress: StubOutcome] = [:], proxies: [String: StubOutcome] = [:],
    resolver: StubResolver = StubResolver(), timeSource: ManualTimeSource? = nil
  ) {
    self.init(
      script, proxies: proxies, resolver: resolver as any Resolver,
      timeSource: timeSource ?? SystemTimeSource() as any TimeSource)
  }

  /// Creates a transport with any resolver and any clock.
  package init(
    _ script: [IPAddress: StubOutcome] = [:], proxies: [String: StubOutcome] = [:],
    resolver: any Resolver, timeSource: any TimeSource
  ) {
    var outcomes: [Destination: StubOutcome] = [:]
    for (address, outcome) in script { outcomes[.address(address)] = outcome }
    for (proxy, outcome) in proxies { outcomes[.proxy(proxy)] = outcome }
    state = AsyncCondition(State(outcomes: outcomes))
    self.resolver = resolver
    self.timeSource = timeSource
  }

  /// Changes the behaviour of an address from now on, and closes the idle connections to the address.
  public func set(_ outcome: StubOutcome, for address: IPAddress) {
    state.update { state in
      state.outcomes[.address(address)] = outcome
      state.pool = state.pool.filter { $0.key.destination != .address(address) }
    }
  }

  /// The requests that were sent, in the order of sending.
  public var received: [Received] { state.state.received }

  /// The addresses of all connection attempts, in order. The reuse of a pooled connection is not an attempt.
  public var opened: [IPAddress] { state.state.opened }

  /// The number of connections that are open and ready for a request.
  public var pooled: Int { state.state.pool.values.reduce(0, +) }

  /// The number of response bodies that are neither ended nor released.
  public var openBodies: Int { state.state.openBodies }

  /// Sends a request along the legs of a plan, by the script.
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
      origin: origin, destination: .address(endpoint.address), isVerified: true,
      multiplexes: origin.scheme == .https)
    let leg = StubLeg(connection: connection, limit: limit, isKept: keep)
    return try await leg.connect(on: self)
  }

  /// Fails the calls under way, and returns when all of them have ended.
  package func shutdown() async {
    state.update { state in
      state.isShutDown = true
      state.pool = [:]
    }
    _ = await state.wait { $0.underWay == 0 }
  }

  /// Counts a call that begins. Returns false after shutdown.
  func begin() -> Bool {
    state.update { state in
      if !state.isShutDown { state.underWay += 1 }
      return !state.isShutDown
    }
  }

  func end() { state.update { $0.underWay -= 1 } }

  /// Takes an open connection from the pool. Returns whether there was one.
  func take(_ connection: Connection) -> Bool {
    state.update { state in
      let count = state.pool[connection] ?? 0
      if count > 0, !connection.multiplexes { state.pool[connection] = count - 1 }
      return count > 0
    }
  }

  /// Adds a ready connection to the pool. The pool needs only one connection that carries many requests.
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
