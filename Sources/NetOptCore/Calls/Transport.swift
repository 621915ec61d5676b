/// The properties of a call besides the request.
@usableFromInline
package struct CallContext: Sendable {
  /// The number of the call within its client.
  package var id: UInt64
  /// When the call began. Offsets in reports are relative to this moment.
  package var started: MonotonicInstant
  /// The call's deadline, or `nil`.
  package var deadline: MonotonicInstant?
  /// The plan for the request, or `nil` before planning.
  package var plan: RoutePlan?
  /// The attempt that this call context belongs to. Almost always `nil`: a first attempt without a hedge has
  /// none.
  package var attempt: Attempt?

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
/// - Errors contain the route.
/// - After `shutdown`, every call fails with `NetOptError.Code.shutDown`.
package protocol Transport: Sendable {
  /// Sends a request along the legs of a plan, and returns when the response head has arrived.
  ///
  /// - Throws: `NetOptError` with the route, if no leg could carry the request or the carrying leg failed.
  func execute(
    _ request: NetOptRequest, along plan: RoutePlan, in context: CallContext
  ) async throws(NetOptError) -> NetOptResponse

  /// Opens a connection to an endpoint, with a TLS handshake if the origin's scheme is `https`. Sends no
  /// request.
  ///
  /// - Parameters:
  ///   - limit: the maximum time for opening the connection.
  ///   - keep: if true, a pooled connection satisfies the call, and a new connection stays in the pool if the
  ///     protocol allows that (HTTP/2). If false, the call opens a new connection and closes it at once.
  /// - Throws: `LegError` with the reason why the connection did not become ready.
  func connect(
    to endpoint: IPEndpoint, of origin: Origin, within limit: Duration, keep: Bool
  ) async throws(LegError) -> ConnectReport

  /// Opens a connection along the legs of a plan, as a request would, and keeps it in the pool if the
  /// protocol allows that (HTTP/2). A pooled connection satisfies the call. Sends no request.
  ///
  /// - Parameter request: a request with the options of the requests to come. The transport does not send it.
  /// - Returns: the route of the connection.
  /// - Throws: `NetOptError` with the route, if no leg became ready. The default implementation throws
  ///   `unsupported`.
  func warmUp(
    _ request: NetOptRequest, along plan: RoutePlan, in context: CallContext
  ) async throws(NetOptError) -> RouteReport

  /// Reports that this machine has joined another network. New calls do not use the connections from before;
  /// transfers under way continue. The default implementation does nothing.
  func networkChanged()

  /// Fails all calls under way, closes all connections, and returns when both are gone.
  func shutdown() async
}

extension Transport {
  /// Throws `unsupported`.
  package func warmUp(
    _ request: NetOptRequest, along plan: RoutePlan, in context: CallContext
  ) async throws(NetOptError) -> RouteReport {
    throw NetOptError(
      .unsupported, phase: .connect, "this transport cannot open connections before requests",
      route: RouteReport(plan: plan, legs: []))
  }

  /// Does nothing.
  package func networkChanged() {}
}

/// The time that opening a connection took, or the round trip of an ICMP echo request.
package struct ConnectReport: Hashable, Sendable {
  /// The duration of the TCP handshake, or the round-trip time of the echo request.
  package var connect: Duration
  /// The duration of the TLS handshake; `nil` without TLS.
  package var tls: Duration?
  /// Whether the call used a pooled connection. The durations are then not measured.
  package var reused: Bool

  /// Creates a report.
  package init(connect: Duration, tls: Duration? = nil, reused: Bool = false) {
    self.connect = connect
    self.tls = tls
    self.reused = reused
  }

  /// The time from the first packet until a request could be sent. Computed in saturating nanoseconds,
  /// because the sum of two `Duration` values may overflow.
  package var ready: Duration {
    .nanoseconds(connect.nanoseconds.addingClamped(tls?.nanoseconds ?? 0))
  }
}

/// The reason why a connection could not be opened, with the data for blaming the endpoint.
package struct LegError: Error, Hashable, Sendable {
  /// The failure.
  package let failure: LegFailure
  /// Whether the caller ended the attempt.
  package let isCancellation: Bool

  /// Creates an error.
  package init(_ failure: LegFailure, isCancellation: Bool = false) {
    self.failure = failure
    self.isCancellation = isCancellation
  }
}
