/// What the interceptors and the transport know about a call besides the request.
@usableFromInline
package struct CallContext: Sendable {
  /// The number of the call, unique within its client. 0 for the client's own requests, such as probes and
  /// requests for the list.
  package var id: UInt64
  /// When the call began. Times in reports are offsets from this moment.
  package var started: MonotonicInstant
  /// When the call must have ended; `nil` without a limit.
  package var deadline: MonotonicInstant?
  /// The plan for the request; `nil` until the planner has made it.
  package var plan: RoutePlan?
  /// The attempt to which this context belongs. `nil` for a first attempt without a hedge, as in
  /// nearly all calls.
  package var attempt: Attempt?
  /// The trace of the call; `nil` when the client exports no traces.
  package var trace: CallTrace?

  /// Creates a context.
  package init(id: UInt64, started: MonotonicInstant, deadline: MonotonicInstant?) {
    self.id = id
    self.started = started
    self.deadline = deadline
  }
}

/// Sends requests along the legs of a plan.
///
/// Every transport satisfies these rules, which `TransportConformance` of the test kit checks:
///
/// - The transport sends a request again only if the request may be repeated
///   (`NetOptRequest.mayBeRepeated`) or no server has processed it (docs/adr/0026).
/// - Every call ends at most 50 ms after its deadline.
/// - Cancelling the task ends the call.
/// - Every error contains the route until the failure (`NetOptError.route`).
/// - After `shutdown`, every call fails with `NetOptError.Code.shutDown`.
package protocol Transport: Sendable {
  /// Sends a request along the legs of a plan, and returns when the response head has arrived.
  ///
  /// - Throws: `NetOptError` with the route, if no leg became ready, or the leg that sent the request failed.
  func execute(
    _ request: NetOptRequest, along plan: RoutePlan, in context: CallContext
  ) async throws(NetOptError) -> NetOptResponse

  /// Opens a connection to an endpoint, with a TLS handshake if the origin's scheme is `https`. Sends no
  /// request.
  ///
  /// - Parameters:
  ///   - limit: the maximum time for opening the connection.
  ///   - keep: whether the connection is for later requests. If true, a pooled connection is enough, and a
  ///     new HTTP/2 connection stays in the pool. If false, the call opens a new connection and closes it at
  ///     once.
  /// - Throws: `LegError` with the reason why the connection did not become ready.
  func connect(
    to endpoint: IPEndpoint, of origin: Origin, within limit: Duration, keep: Bool
  ) async throws(LegError) -> ConnectReport

  /// Opens a connection along the legs of a plan, as a request would, but sends no request. Opens none if
  /// there is a pooled connection already. An HTTP/2 connection stays in the pool. An HTTP/1.1 connection is
  /// closed.
  ///
  /// - Parameter request: a request with the options of the requests to come. The transport uses its options
  ///   and does not send it.
  /// - Returns: the route of the connection.
  /// - Throws: `NetOptError` with the route, if no leg became ready. The default implementation throws
  ///   `unsupported`.
  func warmUp(
    _ request: NetOptRequest, along plan: RoutePlan, in context: CallContext
  ) async throws(NetOptError) -> RouteReport

  /// What the transport has counted; `nil` if it counts nothing. The default is `nil`.
  var counts: TransportCounts? { get }

  /// Reports that this machine has joined another network. New calls do not use the connections from before;
  /// transfers under way continue. The default implementation does nothing.
  func networkChanged()

  /// Returns when no body is being received, or when the task is cancelled. Call this when all calls of
  /// `execute` have returned. The default implementation returns at once.
  func drain() async

  /// Fails all calls under way and closes all connections. Returns when there are no more calls and
  /// connections.
  func shutdown() async
}

extension Transport {
  /// The default: throws `unsupported`.
  package func warmUp(
    _ request: NetOptRequest, along plan: RoutePlan, in context: CallContext
  ) async throws(NetOptError) -> RouteReport {
    throw NetOptError(
      .unsupported, phase: .connect, "this transport cannot open connections before requests",
      route: RouteReport(plan: plan, legs: []))
  }

  /// The default: `nil`.
  package var counts: TransportCounts? { nil }

  /// The default: does nothing.
  package func networkChanged() {}

  /// The default: returns at once.
  package func drain() async {}
}

/// How long it took to open a connection, or the round-trip time of an ICMP echo request.
package struct ConnectReport: Hashable, Sendable {
  /// The duration of the TCP handshake, or the round-trip time of the echo request.
  package var connect: Duration
  /// The duration of the TLS handshake; `nil` without TLS. Probes begin TLS one after another; the wait for this
  /// is not a part of it.
  package var tls: Duration?
  /// Whether there was a pooled connection, so that none was opened. Then the durations are no measurements.
  package var reused: Bool

  /// Creates a report.
  package init(connect: Duration, tls: Duration? = nil, reused: Bool = false) {
    self.connect = connect
    self.tls = tls
    self.reused = reused
  }

  /// The time until the connection was ready for a request: the sum of both handshakes. The sum is clamped to
  /// 64 bits of nanoseconds, because the sum of two `Duration` values may overflow.
  package var ready: Duration {
    .nanoseconds(connect.nanoseconds.addingClamped(tls?.nanoseconds ?? 0))
  }
}

/// The reason why a connection could not be opened, and whether the failure counts against the endpoint.
package struct LegError: Error, Hashable, Sendable {
  /// The failure.
  package let failure: LegFailure
  /// Whether the failure says nothing about the endpoint: the attempt was cancelled, the client was shut
  /// down, or a probe timed out because the time for all probes was over. If true, the failure does not count
  /// against the endpoint.
  package let isInconclusive: Bool

  /// Creates an error.
  package init(_ failure: LegFailure, isInconclusive: Bool = false) {
    self.failure = failure
    self.isInconclusive = isInconclusive
  }
}
