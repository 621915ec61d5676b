import NetOptCore

/// The evidence against an endpoint while requests that were sent to it wait longer than usual for their
/// responses.
///
/// An endpoint whose server has stopped accepts requests as before, and each request would wait until its
/// deadline. So the planner suspects the endpoint while requests wait: it sends new requests elsewhere, and
/// asks for a new connection to the endpoint. The result of this connection, and the results of similar
/// requests elsewhere, decide whether the endpoint is silent or only takes long.
struct Silence: Hashable, Sendable {
  /// The result of a new connection to the endpoint since the suspicion began; `untried` without a result.
  enum Connection: Hashable, Sendable { case untried, works, fails }

  /// What the planner takes the endpoint to be.
  enum Verdict: Hashable, Sendable {
    /// Undecided: the endpoint may only be slow.
    case suspected
    /// The endpoint is silent: other endpoints answer requests of these kinds.
    case silent(Set<RequestKind>)
    /// The endpoint is unreachable: new connections to it fail too, and another endpoint works.
    case dead
  }

  /// The number of waiting requests from which on the planner does not take them for a few slow ones.
  static let many = 3
  /// The shortest trial. During the trial, requests avoid an endpoint where `many` requests wait, so that
  /// requests of the same kind can show how they fare elsewhere.
  static let shortestTrial = Duration.seconds(1)
  /// How much longer the suspicion lasts when the planner asked for a new connection and has no result.
  static let probeLimit = Duration.seconds(5)
  /// The time that a call must have left, besides the time for a connection, before its request is sent
  /// elsewhere.
  static let margin = Duration.milliseconds(250)
  /// The maximum number of doublings of the silence limit after wrong suspicions. The silence limit is the
  /// time that requests may wait before the planner suspects the endpoint.
  static let mostDoublings: UInt8 = 3
  /// How long a wrong suspicion prolongs the silence limit.
  static let memory = Duration.seconds(600)

  /// When the first of the waiting requests was sent.
  let since: MonotonicInstant
  /// The end of the trial, in which requests of the same kind can show how they fare elsewhere.
  let trialEnds: MonotonicInstant
  /// Whether the planner asked for a new connection to the endpoint.
  let isProbed: Bool
  /// The result of the new connection that the planner asked for, or of another probe.
  var connection = Connection.untried
  /// Changes from `suspected` when the evidence suffices.
  var verdict = Verdict.suspected

  /// Whether the planner has decided that the endpoint does not respond.
  var isCertain: Bool { verdict != .suspected }

  /// Whether a waiting request is better sent elsewhere. When connections to the endpoint work, only the
  /// first attempt of a call is sent elsewhere: the request may take long there too.
  func concerns(_ request: WaitingRequest) -> Bool {
    switch verdict {
    case .suspected: false
    case .silent(let kinds): request.isFirst && kinds.contains(request.kind)
    case .dead: true
    }
  }

  /// Whether the time for finding the endpoint silent is over.
  ///
  /// - Parameter isMany: whether the waiting requests count as more than a few slow ones.
  func isExpired(isMany: Bool, at now: MonotonicInstant) -> Bool {
    switch connection {
    case .works: !isMany || now >= trialEnds
    case .untried: now >= (isProbed ? trialEnds + Self.probeLimit : trialEnds)
    // An endpoint without working connections stays suspected until another endpoint works.
    case .fails: false
    }
  }
}

/// How much longer the planner waits before it suspects an endpoint that it suspected wrongly before.
struct SuspicionBackoff: Hashable, Sendable {
  /// How often wrong suspicions have doubled the silence limit.
  private var doublings: UInt8 = 0
  /// When the last wrong suspicion ended; `nil` if there was none.
  private var last: MonotonicInstant?
  /// Only requests that were sent after this moment are evidence of silence. The earlier ones were waiting
  /// when a suspicion ended, so their wait shows nothing new.
  private(set) var evidenceStart = MonotonicInstant(nanoseconds: .min)

  /// The silence limit at a moment.
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
