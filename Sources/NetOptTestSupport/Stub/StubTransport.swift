public import NetOptCore

/// A transport without a network. A script decides the behaviour of each address. The race of `NetOptCore`
/// decides when each leg starts and which leg sends the request, as in the real transport.
///
/// Over `https`, a connection carries many requests, unless the request asks for HTTP/1.1. Such a connection
/// stays in the pool once it is open, and later calls to the address send on it at once. An HTTP/1.1
/// connection returns to the pool when the body of its response has been read to the end. A request whose
/// body is a stream counts as sent when the transport has read the whole body. Like every transport, the stub
/// does not retry and does not follow redirects.
public final class StubTransport: Transport {
  /// A request that was sent.
  public struct Received: Sendable {
    /// The request.
    public let request: NetOptRequest
    /// The body of the request.
    public let body: [UInt8]
    /// The address that received the request; `nil` when a proxy received it.
    public let address: IPAddress?
  }

  /// The destination of a connection. The script has an outcome for each destination.
  enum Destination: Hashable {
    case address(IPAddress)
    /// The URL of a proxy.
    case proxy(String)
    /// The host name of a DNS leg, before the resolver has responded. No connection has this destination.
    case name

    /// The destination of a leg of a plan.
    init(_ target: RoutePlan.Leg.Target, of plan: RoutePlan) {
      self =
        switch target {
        case .address(let address): .address(address)
        case .proxy: .proxy(plan.proxy ?? "")
        case .dns: .name
        }
    }
  }

  /// The properties of a connection that decide which requests can use it.
  struct Connection: Hashable {
    let origin: Origin
    let destination: Destination
    /// Whether the certificate of the server is verified.
    let isVerified: Bool
    /// Whether the connection carries many requests at once (HTTP/2).
    let multiplexes: Bool
  }

  struct State {
    /// The outcome for each destination of the script.
    var outcomes: [Destination: StubOutcome]
    /// The outcome for other addresses. Other proxies refuse connections.
    var others = StubOutcome.refuse
    /// The number of open connections with these properties that are ready for a request.
    var pool: [Connection: Int] = [:]
    /// The requests that were sent, in order.
    var received: [Received] = []
    /// The addresses of all connection attempts, in order.
    var opened: [IPAddress] = []
    /// The number of calls of `execute` and `connect` that have not returned.
    var underWay = 0
    /// The number of response bodies that are neither ended nor released.
    var openBodies = 0
    var isShutDown = false

    func outcome(of destination: Destination) -> StubOutcome {
      if let outcome = outcomes[destination] { return outcome }
      if case .address = destination { return others }
      return .refuse
    }
  }

  let state: AsyncCondition<State>
  /// Resolves the names of DNS legs.
  let resolver: any Resolver
  /// The clock for all times and timers of the stub.
  let timeSource: any TimeSource

  /// Creates a transport.
  ///
  /// - Parameters:
  ///   - script: the behaviour of each address. Other addresses refuse connections.
  ///   - proxies: the behaviour of each proxy, by its URL.
  ///   - resolver: the resolver for DNS legs. Default: a resolver that finds no name.
  ///   - timeSource: the clock for times and timers; `nil` for the clock of the system.
  public convenience init(
    _ script: [IPAddress: StubOutcome] = [:], proxies: [String: StubOutcome] = [:],
    resolver: StubResolver = StubResolver(), timeSource: ManualTimeSource? = nil
  ) {
    self.init(
      script, proxies: proxies, resolver: resolver as any Resolver,
      timeSource: timeSource ?? SystemTimeSource() as any TimeSource)
  }

  /// Creates a transport on which all addresses behave alike. DNS finds the address 192.0.2.1 for all names.
  ///
  /// - Parameters:
  ///   - outcome: the behaviour of all hosts.
  ///   - timeSource: the clock for times and timers; `nil` for the clock of the system.
  public convenience init(everyHost outcome: StubOutcome, timeSource: ManualTimeSource? = nil) {
    let address = IPAddress(v4: 0xc000_0201)
    self.init(resolver: StubResolver(others: .addresses([address])), timeSource: timeSource)
    state.update { $0.others = outcome }
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

  /// Changes the behaviour of an address from now on, and removes its connections from the pool.
  public func set(_ outcome: StubOutcome, for address: IPAddress) {
    state.update { state in
      state.outcomes[.address(address)] = outcome
      state.pool = state.pool.filter { $0.key.destination != .address(address) }
    }
  }

  /// Changes the behaviour of all addresses from now on, and removes their connections from the pool.
  public func set(everyHost outcome: StubOutcome) {
    let isProxy = { (destination: Destination) in if case .proxy = destination { true } else { false } }
    state.update { state in
      state.outcomes = state.outcomes.filter { isProxy($0.key) }
      state.others = outcome
      state.pool = state.pool.filter { isProxy($0.key.destination) }
    }
  }

  /// The requests that were sent, in the order of sending.
  public var received: [Received] { state.state.received }

  /// The addresses of all connection attempts, in order. A call that uses a pooled connection makes no
  /// attempt.
  public var opened: [IPAddress] { state.state.opened }

  /// The number of connections that are open and ready for a request.
  public var pooled: Int { state.state.pool.values.reduce(0, +) }

  /// The number of response bodies that are neither ended nor released.
  public var openBodies: Int { state.state.openBodies }

  /// Sends a request along the legs of a plan, as the script decides.
  package func execute(
    _ request: NetOptRequest, along plan: RoutePlan, in context: CallContext
  ) async throws(NetOptError) -> NetOptResponse {
    guard begin() else { throw Self.shutDownError(RouteReport(plan: plan, legs: [])) }
    defer { end() }
    return try await StubCall.run(request, along: plan, in: context, on: self)
  }

  /// Opens a connection to an endpoint, as the script decides.
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

  /// Returns when no call is under way and no response body is open, or when the task is cancelled.
  package func drain() async { _ = await state.wait { $0.underWay == 0 && $0.openBodies == 0 } }

  /// Fails the calls under way, and returns when all of them have ended.
  package func shutdown() async {
    state.update { state in
      state.isShutDown = true
      state.pool = [:]
    }
    _ = await state.wait { $0.underWay == 0 }
  }

  /// Adds a call that begins to the calls under way. Returns false after shutdown; the call must then fail.
  func begin() -> Bool {
    state.update { state in
      if !state.isShutDown { state.underWay += 1 }
      return !state.isShutDown
    }
  }

  /// Removes a call that returns from the calls under way.
  func end() { state.update { $0.underWay -= 1 } }

  /// Takes a connection from the pool. Returns whether there was one. An HTTP/2 connection stays in the pool,
  /// because other requests can use it too.
  func take(_ connection: Connection) -> Bool {
    state.update { state in
      let count = state.pool[connection] ?? 0
      if count > 0, !connection.multiplexes { state.pool[connection] = count - 1 }
      return count > 0
    }
  }

  /// Adds a connection that is ready for a request to the pool. Of HTTP/2 connections with equal properties,
  /// the pool has only one, because it can carry all requests.
  func keep(_ connection: Connection) {
    state.update { state in
      guard !state.isShutDown else { return }
      state.pool[connection] = connection.multiplexes ? 1 : (state.pool[connection] ?? 0) + 1
    }
  }

  /// The error of `connect` after shutdown.
  static let shutDownLegError = LegError(LegFailure(.other, "the transport has been shut down"))

  /// The error of a call after shutdown.
  static func shutDownError(_ route: RouteReport?) -> NetOptError {
    NetOptError(.shutDown, phase: .send, "the transport has been shut down", route: route)
  }
}
