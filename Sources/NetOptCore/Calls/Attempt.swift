import NetOptLocking

/// One attempt of a call that makes several attempts: a retry, or an attempt of a hedged call. The code that
/// starts the attempt (`RepeatedCall`) creates this object and reads the results of the attempt from it.
/// `Router` writes the plan into it, and the transport writes the endpoint. Safe from any thread.
package final class Attempt: Sendable {
  /// The values of `plan` and `remote`, which change during the attempt.
  private struct Progress {
    var plan: RoutePlan?
    var remote: IPEndpoint?
  }

  /// The number of the attempt within the call, from 1.
  package let number: Int
  /// The reason for the attempt.
  package let reason: AttemptReport.Reason
  /// The addresses that the attempt avoids: earlier attempts failed at them, or wait for their responses.
  /// `nil` if the attempt avoids no address.
  package let avoidance: RoutePlan.Avoidance?
  private let progress = Locked(Progress())

  /// Creates an attempt.
  package init(_ number: Int, _ reason: AttemptReport.Reason, avoiding avoidance: RoutePlan.Avoidance? = nil)
  {
    self.number = number
    self.reason = reason
    self.avoidance = avoidance
  }

  /// The plan of the attempt; `nil` until the planner has made it.
  package var plan: RoutePlan? { progress.withLock { $0.plan } }
  /// The endpoint to which the attempt last sent the request. `nil` if the attempt has not sent the request,
  /// or sent it through a proxy.
  package var remote: IPEndpoint? { progress.withLock { $0.remote } }

  /// Records the plan of the attempt.
  package func recordPlan(_ plan: RoutePlan) { progress.withLock { $0.plan = plan } }
  /// Records the endpoint to which the attempt sends the request; `nil` for a proxy.
  package func recordSend(to remote: IPEndpoint?) { progress.withLock { $0.remote = remote } }
}

/// The report of one attempt of a call that made several. All times are offsets from the start of the call.
public struct AttemptReport: Sendable {
  /// The reason for an attempt.
  public enum Reason: String, Hashable, Sendable {
    /// The attempt is the first one of the call.
    case first
    /// The attempt followed an attempt that failed, or that got the status 421, 502, 503 or 504.
    case retry
    /// The attempt was started beside the first attempt, because the first attempt was slow.
    case hedge
  }

  /// How an attempt ended.
  public enum Outcome: Sendable {
    /// A server responded with this status, but the call did not return this response to its caller.
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
  /// When the attempt began, as an offset from the start of the call.
  public var started: Duration
  /// When the attempt ended, as an offset from the start of the call.
  public var ended: Duration
  /// How the attempt ended.
  public var outcome: Outcome
  /// The endpoint to which the attempt sent the request. `nil` if the attempt did not send the request, if no
  /// server processed the request, or if the request went through a proxy.
  public var remote: IPEndpoint?
  /// The route of the attempt; `nil` if the attempt ended before it had a route.
  public var route: RouteReport?
  /// How often the attempt sent the request. The number is more than 1 if the client sent the request again
  /// within the attempt: the server did not process the request, or the request may be repeated and a pooled
  /// connection was dead. For an attempt without a response, resends are not counted: the number is 0 if the
  /// attempt sent nothing or no server processed the request, and 1 otherwise.
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
