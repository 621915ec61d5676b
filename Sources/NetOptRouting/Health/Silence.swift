import NetOptCore

/// The planner's suspicion that an endpoint is silent, and the evidence for it. A suspicion begins when
/// requests that were sent to the endpoint wait longer than usual for their responses.
///
/// An endpoint whose server has stopped accepts requests as before, and each request would wait until its
/// deadline. So the planner suspects the endpoint while requests wait: it sends new requests to other
/// endpoints, and asks for a new connection to the suspected endpoint. The result of this connection, and the
/// responses of other endpoints to similar requests, decide whether the endpoint is silent or only slow.
struct Silence: Hashable, Sendable {
  /// The result of a new connection to the endpoint since the suspicion began; `untried` without a result.
  enum Connection: Hashable, Sendable { case untried, works, fails }

  /// What the planner has concluded about the endpoint.
  enum Verdict: Hashable, Sendable {
    /// Undecided: the endpoint may only be slow.
    case suspected
    /// The endpoint does not respond to requests of these kinds, although other endpoints do.
    case silent(Set<RequestKind>)
    /// The endpoint is unreachable: a new connection to it failed too, and another endpoint works.
    case dead
  }

  /// The number of waiting requests that makes a few slow requests an unlikely explanation. With fewer, the
  /// suspicion ends when a new connection works.
  static let many = 3
  /// The shortest trial. The trial is the time in which new requests go to other endpoints, so that requests
  /// of the same kind can show whether other endpoints answer them.
  static let shortestTrial = Duration.seconds(1)
  /// How long after the trial a suspicion still waits for the result of the new connection that the planner
  /// asked for.
  static let probeLimit = Duration.seconds(5)
  /// The minimum time that a call must have left for its request to move to another endpoint, in addition to
  /// the time for a connection to that endpoint.
  static let margin = Duration.milliseconds(250)
  /// The maximum number of doublings of the silence limit after wrong suspicions. The silence limit is the
  /// time that requests may wait before the planner suspects the endpoint.
  static let mostDoublings: UInt8 = 3
  /// How long the silence limit stays longer after a wrong suspicion.
  static let memory = Duration.seconds(600)

  /// When the first of the waiting requests was sent, as known at the start of the suspicion.
  let since: MonotonicInstant
  /// The end of the trial (`shortestTrial`).
  let trialEnds: MonotonicInstant
  /// Whether the planner asked for a new connection to the endpoint.
  let isProbed: Bool
  /// The result of the new connection that the planner asked for, or of another probe's connection.
  var connection = Connection.untried
  /// The planner's conclusion: `suspected` until there is enough evidence for another one.
  var verdict = Verdict.suspected

  /// Whether the planner has decided that the endpoint is silent or dead.
  var isCertain: Bool { verdict != .suspected }

  /// Whether a waiting request should move to another endpoint. With the verdict `silent`, a call moves only
  /// once, with its first attempt: the request may take long at the other endpoint too.
  func concerns(_ request: WaitingRequest) -> Bool {
    switch verdict {
    case .suspected: false
    case .silent(let kinds): request.isFirst && kinds.contains(request.kind)
    case .dead: true
    }
  }

  /// Whether the suspicion ends, because its time has passed without enough evidence of silence.
  ///
  /// - Parameter isMany: whether at least `many` requests wait, or the endpoint failed before.
  func isExpired(isMany: Bool, at now: MonotonicInstant) -> Bool {
    switch connection {
    case .works: !isMany || now >= trialEnds
    case .untried: now >= (isProbed ? trialEnds + Self.probeLimit : trialEnds)
    // An endpoint without working connections stays suspected until another endpoint works.
    case .fails: false
    }
  }
}

/// Makes the silence limit of an endpoint longer after wrong suspicions: the planner then waits longer before
/// it suspects the endpoint again.
struct SuspicionBackoff: Hashable, Sendable {
  /// How many times wrong suspicions have doubled the silence limit, at most `mostDoublings`.
  private var doublings: UInt8 = 0
  /// When the last wrong suspicion ended; `nil` if there was none.
  private var last: MonotonicInstant?
  /// Only requests that were sent after this moment are evidence of silence. Earlier requests were already
  /// waiting when a suspicion ended, so their wait shows nothing new.
  private(set) var evidenceStart = MonotonicInstant(nanoseconds: .min)

  /// The silence limit at a moment, with its doublings.
  ///
  /// - Parameter time: the silence limit without wrong suspicions.
  func extended(_ time: Duration, at now: MonotonicInstant) -> Duration {
    guard let last, now < last + Silence.memory else { return time }
    return time * (1 << Int(doublings))
  }

  /// Excludes requests that were sent until now from the evidence.
  mutating func restartEvidence(at now: MonotonicInstant) { evidenceStart = now }

  /// Records a wrong suspicion.
  mutating func recordFalseSuspicion(at now: MonotonicInstant) {
    if let last, now >= last + Silence.memory { doublings = 0 }
    doublings = min(doublings + 1, Silence.mostDoublings)
    last = now
    evidenceStart = now
  }
}
