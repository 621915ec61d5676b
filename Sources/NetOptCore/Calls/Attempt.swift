import NetOptLocking

/// The state of one of several attempts of a call: a retry, or one of the attempts of a hedged call. The
/// caller and the performer of the attempt share it. Safe from any thread.
package final class Attempt: Sendable {
  private struct Progress {
    var plan: RoutePlan?
    var remote: IPEndpoint?
  }

  /// The number of the attempt within the call, from 1.
  package let number: Int
  /// The reason for the attempt.
  package let reason: AttemptReport.Reason
  /// The addresses that the attempt avoids, or `nil`.
  package let avoidance: RoutePlan.Avoidance?
  private let progress = Locked(Progress())

  /// Creates an attempt.
  package init(_ number: Int, _ reason: AttemptReport.Reason, avoiding avoidance: RoutePlan.Avoidance? = nil)
  {
    self.number = number
    self.reason = reason
    self.avoidance = avoidance
  }

  /// The attempt's plan, or `nil` before planning.
  package var plan: RoutePlan? { progress.withLock { $0.plan } }
  /// The endpoint that receives the request, or `nil` as long as it is unknown.
  package var remote: IPEndpoint? { progress.withLock { $0.remote } }

  /// Records the attempt's plan.
  package func isPlanned(_ plan: RoutePlan) { progress.withLock { $0.plan = plan } }
  /// Records the endpoint that receives the request.
  package func isSent(to remote: IPEndpoint?) { progress.withLock { $0.remote = remote } }
}

/// The report of one of several attempts of a call. All times are offsets from the start of the call.
public struct AttemptReport: Sendable {
  /// The reason for an attempt.
  public enum Reason: String, Hashable, Sendable {
    /// The first attempt of the call.
    case first
    /// An earlier attempt failed.
    case retry
    /// An earlier attempt is slow.
    case hedge
  }

  /// How an attempt ended.
  public enum Outcome: Sendable {
    /// The server responded with this status, and the call did not use the response.
    case answered(status: Int)
    /// The attempt failed.
    case failed(NetOptError)
    /// The call ended the attempt because another attempt received a response first.
    case overtaken
  }

  /// The number of the attempt within the call, from 1.
  public var number: Int
  /// The reason for the attempt.
  public var reason: Reason
  /// When the attempt began.
  public var started: Duration
  /// When the attempt ended.
  public var ended: Duration
  /// How the attempt ended.
  public var outcome: Outcome
  /// The endpoint that received the request, or `nil` if the request was not sent.
  public var remote: IPEndpoint?
  /// The route of the attempt.
  public var route: RouteReport?
  /// How often the attempt sent the request. More than 1 if the request was resent before a response came: a
  /// pooled connection was dead, or the server did not process the request. An attempt without a response
  /// counts as 1, or as 0 if it sent nothing or no server processed the request.
  public var sends: Int

  /// Creates a report.
  package init(
    number: Int, reason: Reason, started: Duration, ended: Duration, outcome: Outcome,
    remote: IPEndpoint? = nil, route: RouteReport? = nil, sends: Int
  ) {
    self.number = number
    self.reason = reason
    self.started = started
    self.ended = ended
    self.outcome = outcome
    self.remote = remote
    self.route = route
    self.sends = sends
  }
}
