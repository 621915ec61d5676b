import NetOptCore

/// What is held against an endpoint while requests that were sent to it wait for their answers longer than is usual.
///
/// An endpoint whose server has stopped takes requests as ever, and each of them would wait for its deadline. So it is suspected while
/// they wait: new requests go elsewhere, and a new connection is tried. What that shows, and how requests fare elsewhere, decides whether
/// it has gone silent or takes its time.
struct Silence: Hashable, Sendable {
  /// What opening a new connection to the endpoint has shown since.
  enum Connection: Hashable, Sendable { case untried, works, fails }

  /// What is known of the endpoint.
  enum Verdict: Hashable, Sendable {
    /// It may only be slow.
    case suspected
    /// Requests of these kinds are answered elsewhere.
    case silent(Set<RequestKind>)
    /// Nothing can be connected to it either, and another endpoint works.
    case dead
  }

  /// So many requests that wait are more than a few slow ones.
  static let many = 3
  /// How long an endpoint with that many is not trusted, for requests of the same kind to show how they fare elsewhere.
  static let shortestTrial = Duration.seconds(1)
  /// How much longer it is not trusted when a new connection is tried and nothing has come of that.
  static let probeLimit = Duration.seconds(5)
  /// What a call has to have left besides the time for a connection, for its request to be taken.
  static let margin = Duration.milliseconds(250)
  /// By how many doublings the time is prolonged that an endpoint is given, when it was suspected in vain.
  static let mostDoublings: UInt8 = 3
  /// For how long it is.
  static let memory = Duration.seconds(600)

  /// When the first of the requests that wait was sent.
  let since: MonotonicInstant
  /// Until when requests of the same kind may show how they fare elsewhere.
  let trialEnds: MonotonicInstant
  /// Whether a new connection is tried.
  let isProbed: Bool
  var connection = Connection.untried
  var verdict = Verdict.suspected

  /// Whether it is settled that the endpoint does not answer.
  var isCertain: Bool { verdict != .suspected }

  /// Whether it is settled that a request is better sent elsewhere. When connections work it is only sent elsewhere once: it may take its time
  /// there as well.
  func concerns(_ request: WaitingRequest) -> Bool {
    switch verdict {
    case .suspected: false
    case .silent(let kinds): request.isFirst && kinds.contains(request.kind)
    case .dead: true
    }
  }

  /// Whether the endpoint has had all the time in which it could have been found to be silent.
  ///
  /// - Parameter isMany: whether more requests wait than a few slow ones.
  func isInVain(isMany: Bool, at now: MonotonicInstant) -> Bool {
    switch connection {
    case .works: !isMany || now >= trialEnds
    case .untried: now >= (isProbed ? trialEnds + Self.probeLimit : trialEnds)
    // What cannot be connected to stays suspected until another endpoint works.
    case .fails: false
    }
  }
}

/// How much longer an endpoint is given before it is suspected: it was suspected in vain.
struct Patience: Hashable, Sendable {
  private var doublings: UInt8 = 0
  private var last: MonotonicInstant?
  /// Requests that were sent before this are known to take their time.
  private(set) var excused = MonotonicInstant(nanoseconds: .min)

  /// The time that an endpoint is given at a moment.
  func prolonged(_ time: Duration, at now: MonotonicInstant) -> Duration {
    guard let last, now < last + Silence.memory else { return time }
    return time * (1 << Int(doublings))
  }

  /// Requests that were sent until now say nothing more.
  mutating func excuse(at now: MonotonicInstant) { excused = now }

  /// It was suspected in vain.
  mutating func wasWrong(at now: MonotonicInstant) {
    if let last, now >= last + Silence.memory { doublings = 0 }
    doublings = min(doublings + 1, Silence.mostDoublings)
    last = now
    excused = now
  }
}
