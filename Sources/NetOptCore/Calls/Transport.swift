/// What is known of a call besides the request.
@usableFromInline
package struct CallContext: Sendable {
  /// A number that tells calls of one client apart.
  package var id: UInt64
  /// When the call began. Offsets in reports count from here.
  package var started: MonotonicInstant
  /// When the call has to be over, or `nil`.
  package var deadline: MonotonicInstant?
  /// The way the request is to take, once it is planned.
  package var plan: RoutePlan?
  /// Which of several attempts this is; `nil` for a first one that has no copy beside it, as nearly all are.
  package var attempt: Attempt?

  /// Makes a context.
  package init(id: UInt64, started: MonotonicInstant, deadline: MonotonicInstant?) {
    self.id = id
    self.started = started
    self.deadline = deadline
  }
}

/// Sends requests the way a plan says.
///
/// Whatever a transport is made of, it keeps these promises, which `TransportConformance` of the test kit checks:
/// the request is sent at most once unless it may be repeated; every call ends, at the latest 50 ms after its
/// deadline; cancelling the task ends the call; errors carry the route; after `shutdown` every call is refused with
/// `NetOptError.Code.shutDown`.
package protocol Transport: Sendable {
  /// Performs a request along a plan's legs, and returns when the head of the response is there.
  ///
  /// - Throws: `NetOptError` with the route, when no leg could carry the request, or the one that did failed.
  func execute(
    _ request: NetOptRequest, along plan: RoutePlan, in context: CallContext
  ) async throws(NetOptError) -> NetOptResponse

  /// Opens a connection to an endpoint, TLS included for an `https` origin. Nothing is requested.
  ///
  /// - Parameters:
  ///   - limit: the longest that it may take.
  ///   - keep: whether a pooled connection will do, and a new one is kept for the requests to come where the
  ///     protocol allows that (HTTP/2). Otherwise the connection is new and closed at once.
  /// - Throws: what kept the connection from being ready.
  func connect(
    to endpoint: IPEndpoint, of origin: Origin, within limit: Duration, keep: Bool
  ) async throws(LegError) -> ConnectReport

  /// Opens a connection along a plan's legs, the way a request would, and keeps it for the requests to come where the
  /// protocol allows that (HTTP/2). Nothing is requested. A connection that is there already will do.
  ///
  /// - Parameter request: whose options are those of the requests to come; it is not sent.
  /// - Returns: the way it took.
  /// - Throws: `NetOptError` with the route, when no leg could be made ready. The default throws `unsupported`.
  func warmUp(
    _ request: NetOptRequest, along plan: RoutePlan, in context: CallContext
  ) async throws(NetOptError) -> RouteReport

  /// This machine is in another network. Connections from before are not used for calls that come from now on; what is
  /// under way goes on. The default does nothing.
  func networkChanged()

  /// Fails what is under way, closes all connections, and returns when nothing of them is left.
  func shutdown() async
}

extension Transport {
  /// Throws `unsupported`.
  package func warmUp(
    _ request: NetOptRequest, along plan: RoutePlan, in context: CallContext
  ) async throws(NetOptError) -> RouteReport {
    throw NetOptError(
      .unsupported, phase: .connect, "this transport opens no connections ahead of requests",
      route: RouteReport(plan: plan, legs: []))
  }

  /// Does nothing.
  package func networkChanged() {}
}

/// What opening a connection took.
package struct ConnectReport: Hashable, Sendable {
  /// The TCP handshake.
  package var connect: Duration
  /// The TLS handshake, or `nil` without TLS.
  package var tls: Duration?
  /// Whether a pooled connection was there already; then nothing was measured.
  package var reused: Bool

  /// Makes a report.
  package init(connect: Duration, tls: Duration? = nil, reused: Bool = false) {
    self.connect = connect
    self.tls = tls
    self.reused = reused
  }

  /// From the first packet until a request could be sent. In nanoseconds, saturating: a sum of two durations may not fit.
  package var ready: Duration {
    .nanoseconds(connect.nanoseconds.addingClamped(tls?.nanoseconds ?? 0))
  }
}

/// Why a connection could not be opened, with what blame needs.
package struct LegError: Error, Hashable, Sendable {
  /// What happened.
  package let failure: LegFailure
  /// Whether it was the caller who ended it.
  package let isCancellation: Bool

  /// Makes an error.
  package init(_ failure: LegFailure, isCancellation: Bool = false) {
    self.failure = failure
    self.isCancellation = isCancellation
  }
}
