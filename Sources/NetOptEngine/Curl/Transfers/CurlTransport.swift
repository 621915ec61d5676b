public import NetOptCore
import NetOptLocking

/// The transport on libcurl's multi interface.
///
/// Each leg of a plan is a transfer on an easy handle with `CURLOPT_CONNECT_TO`, so that URL, Host, SNI and
/// verification still use the host name. The callback for `CURLOPT_PREREQFUNCTION` is the gate of the race:
/// it decides which leg sends the request. Safe to use from any task.
public final class CurlTransport: Transport {
  private let loop: EventLoop
  /// The multi handles of the present network and of earlier ones.
  private let generations: NetworkGenerations
  /// The number of unread body bytes at which a transfer is paused (`CurlConfiguration.bodyBuffer`).
  private let bodyBuffer: Int
  private let counter = TransportCounter()

  /// Makes a transport on a loop. `shutdown` does not stop the loop.
  ///
  /// - Parameter waitObserver: observes the requests that wait for their responses; `nil` for no observer.
  /// - Throws: `invalidConfiguration`, naming the setting, or `libraryFailed`.
  package init(
    _ configuration: CurlConfiguration = CurlConfiguration(), legs: any LegSource,
    waitObserver: (any WaitObserver)? = nil, loop: EventLoop
  ) throws(NetOptError) {
    try configuration.check()
    self.loop = loop
    bodyBuffer = configuration.bodyBuffer
    generations = try NetworkGenerations(
      configuration, try ClientTLS(configuration, loop: loop), legs: legs, waitObserver: waitObserver,
      counter: counter, loop: loop)
  }

  /// What the transport has counted, with the connections of earlier networks.
  package var counts: TransportCounts? { counter.counts }

  /// Performs a request along a plan.
  ///
  /// - Throws: `NetOptError`; `invalidRequest` before anything is sent when the method, headers or body
  ///   cannot be sent.
  package func execute(
    _ request: NetOptRequest, along plan: RoutePlan, in context: CallContext
  ) async throws(NetOptError) -> NetOptResponse {
    let exchange = try exchange(request, plan, context)
    await exchange.perform()
    return try exchange.takeResponse()
  }

  /// Makes the exchange of a request, or throws `invalidRequest`. Not inlined: otherwise every waiting call
  /// would keep memory for the local variables of this method.
  @inline(never)
  private func exchange(
    _ request: NetOptRequest, _ plan: RoutePlan, _ context: CallContext
  ) throws(NetOptError) -> Exchange {
    if let fault = RequestLines.fault(of: request) {
      throw NetOptError(.invalidRequest, phase: .send, fault, route: RouteReport(plan: plan, legs: []))
    }
    return Exchange(
      .request, request, along: plan, in: context, on: generations, loop: loop, bodyBuffer: bodyBuffer)
  }

  /// Opens a connection to an endpoint and stops at the gate.
  ///
  /// - Parameters:
  ///   - limit: the time limit for opening the connection.
  ///   - keep: whether an HTTP/2 connection stays in libcurl's pool. An HTTP/1.1 connection is always closed.
  /// - Throws: the failure of the endpoint. `isInconclusive` of the `LegError` is true when the call was
  ///   cancelled or the client was shut down.
  package func connect(
    to endpoint: IPEndpoint, of origin: Origin, within limit: Duration, keep: Bool
  ) async throws(LegError) -> ConnectReport {
    var options = RequestOptions()
    // The deadline of the call enforces the limit. libcurl's own timeout is one second later, so that it does
    // not act first.
    options.connectTimeout = limit + .seconds(1)
    options.connection = keep ? .pooled : .fresh
    let request = NetOptRequest(.head, HTTPURL(origin: origin, target: "/"), options: options)
    let plan = RoutePlan(
      origin: origin, policy: .probe, legs: [RoutePlan.Leg(.address(endpoint.address), source: .list)])
    let now = loop.now()
    let context = CallContext(id: 0, started: now, deadline: now + limit)
    let exchange = Exchange(
      .probe, request, along: plan, in: context, on: generations, loop: loop, bodyBuffer: bodyBuffer)
    await exchange.perform()
    return try exchange.takeConnection()
  }

  /// Opens a connection along a plan and stops at the gate. An HTTP/1.1 connection is not kept: libcurl
  /// closes it when the transfer ends at the gate.
  ///
  /// - Returns: the route of the connection.
  package func warmUp(
    _ request: NetOptRequest, along plan: RoutePlan, in context: CallContext
  ) async throws(NetOptError) -> RouteReport {
    let exchange = Exchange(
      .warmUp, request, along: plan, in: context, on: generations, loop: loop, bodyBuffer: bodyBuffer)
    await exchange.perform()
    return try exchange.takeRoute()
  }

  /// Replaces the TLS settings, and returns when they are replaced. Calls that start from now on use no
  /// connection that was opened with other settings.
  package func setTLS(_ usual: TLSSettings, _ hosts: [String: TLSSettings]) async {
    await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
      let work = GenerationsWork(generations) {
        $0.setTLS(usual, hosts)
        done.resume()
      }
      if !loop.submit(work) { done.resume() }
    }
  }

  /// Replaces the pins of the IP list, by host. Calls that start from now on use no connection that was
  /// opened with other pins.
  package func setPins(_ pins: [String: [PublicKeyPin]]) {
    _ = loop.submit(GenerationsWork(generations) { $0.setPins(pins) })
  }

  /// Makes calls that start from now on use new connections, because this machine has joined another network.
  public func networkChanged() { _ = loop.submit(GenerationsWork(generations) { $0.renew() }) }

  /// Returns when no request is being sent and no body is being received, or when the task is cancelled.
  /// Probes do not count. A call of `execute` that has not returned may move between two multi handles and be
  /// missed, so the caller waits for these calls first.
  package func drain() async {
    let waiter = FirstValue<Void>()
    if !loop.submit(GenerationsWork(generations, { $0.drain(waiter) })) { waiter.set(()) }
    await waiter.wait()
  }

  /// Fails the calls under way and closes all connections. Refuses later calls.
  public func shutdown() async {
    await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
      let work = GenerationsWork(generations) {
        $0.shutDown()
        done.resume()
      }
      if !loop.submit(work) { done.resume() }
    }
  }
}

/// Work on the multi handles that the loop does.
private final class GenerationsWork: LoopWork {
  private let generations: NetworkGenerations
  private let body: @Sendable (NetworkGenerations) -> Void

  init(_ generations: NetworkGenerations, _ body: @escaping @Sendable (NetworkGenerations) -> Void) {
    self.generations = generations
    self.body = body
  }

  func run() { body(generations) }
}
