import NetOptLocking

/// What is known of one of several attempts of a call: it comes after one that failed, or stands beside another one.
/// Shared by whoever makes the attempt and whoever carries it out; safe from any thread.
package final class Attempt: Sendable {
  private struct Progress {
    var plan: RoutePlan?
    var remote: IPEndpoint?
  }

  /// Its number among the call's attempts, from 1.
  package let number: Int
  /// Why it is made.
  package let reason: AttemptReport.Reason
  /// What it keeps away from.
  package let avoidance: RoutePlan.Avoidance?
  private let progress = Locked(Progress())

  /// Makes an attempt.
  package init(_ number: Int, _ reason: AttemptReport.Reason, avoiding avoidance: RoutePlan.Avoidance? = nil)
  {
    self.number = number
    self.reason = reason
    self.avoidance = avoidance
  }

  /// The way it takes, once that is planned.
  package var plan: RoutePlan? { progress.withLock { $0.plan } }
  /// The endpoint to which the request goes, once that is known.
  package var remote: IPEndpoint? { progress.withLock { $0.remote } }

  /// Notes the way that it takes.
  package func isPlanned(_ plan: RoutePlan) { progress.withLock { $0.plan = plan } }
  /// Notes that the request goes to an endpoint.
  package func isSent(to remote: IPEndpoint?) { progress.withLock { $0.remote = remote } }
}

/// What became of one of several attempts of a call. Times are offsets from the start of the call.
public struct AttemptReport: Sendable {
  /// Why an attempt is made.
  public enum Reason: String, Hashable, Sendable {
    /// It is the call's first.
    case first
    /// An earlier one failed.
    case retry
    /// An earlier one is slow.
    case hedge
  }

  /// How an attempt ended.
  public enum Outcome: Sendable {
    /// It was answered with this status, and the answer was not used.
    case answered(status: Int)
    /// It failed.
    case failed(NetOptError)
    /// It was ended because another one was answered first.
    case overtaken
  }

  /// Its number among the call's attempts, from 1.
  public var number: Int
  /// Why it was made.
  public var reason: Reason
  /// When it began.
  public var started: Duration
  /// When it ended.
  public var ended: Duration
  /// How it ended.
  public var outcome: Outcome
  /// The endpoint to which the request went, when it was sent to one.
  public var remote: IPEndpoint?
  /// The way that it took.
  public var route: RouteReport?
  /// How often the request was sent: more than once when libcurl replaced a pooled connection that had died.
  public var sends: Int

  /// Makes a report.
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
