package import FoundationEssentials
package import NetOptCore

/// Decides whether a request is sent once more after an attempt that did not go well. It sends nothing and waits for
/// nothing: it is told what happened and when, and says what to do.
///
/// A request is sent a second time only when it may be repeated, or when every server to which it was sent refused to process it. A failure
/// before anything was sent is no reason: the race has tried every way there is by then (docs/adr/0015).
package struct RetryPolicy: Sendable {
  /// What became of an attempt.
  package typealias Outcome = Result<NetOptResponse, NetOptError>

  /// What to do.
  package enum Decision: Hashable, Sendable {
    /// Let the caller have the outcome.
    case giveUp(Reason)
    /// Send the request again.
    ///
    /// - after: how long to wait first.
    /// - onFreshConnection: whether pooled connections are not to be used.
    case again(after: Duration, onFreshConnection: Bool)
    /// Ask again after this time: the budget has nothing left for the retry, and may have by then.
    case ask(after: Duration)
  }

  /// Why a request is not sent again.
  package enum Reason: Hashable, Sendable {
    /// The outcome is one that another attempt would not change.
    case final
    /// Nothing was sent: every way was tried.
    case nothingSent
    /// The request may not be repeated: its method is not idempotent and it has no key, or its body was a stream.
    case mayNotBeRepeated
    /// It was sent as often as its options allow.
    case attemptsUsedUp
    /// It could not end before the deadline.
    case noTimeLeft(Shortage)
    /// The server asks for a longer wait than is reasonable within a call.
    case toldToWait(Duration)
    /// The budget for retries is used up. The next one that costs no calls is free after this time.
    case budgetUsedUp(nextFree: Duration)
  }

  /// Why there is no time for another attempt.
  package struct Shortage: Hashable, Sendable {
    /// What was left until the deadline; at least zero.
    package let left: Duration
    /// The wait before the attempt.
    package let wait: Duration
    /// The least that the attempt itself takes; zero when that is not known.
    package let attempt: Duration
  }

  /// The longest wait that a server may ask for in `Retry-After`; for a longer one its response is the answer.
  package static let longestWait = Duration.seconds(10)
  /// The wait before the first retry that is not made at once, without jitter; it doubles with each further one.
  static let firstWait = Duration.milliseconds(50)
  /// The most that it becomes.
  static let longestOwnWait = Duration.seconds(2)
  /// How often in a row a call waits for the budget. Together that is 0.8 to 1.6 s: time for a burst of failures to be
  /// repeated, and too little for calls to pile up when nothing works.
  static let mostWaitsForBudget = 5

  private var random: SplitMix64

  /// Makes a policy.
  ///
  /// - Parameter seed: what it draws by chance follows from it. Give each client another one.
  package init(seed: UInt64) { random = SplitMix64(seed: seed) }

  /// Whether an answer may be a reason to send the request again: 502, 503, 504 (RFC 9110, sections 15.6.3 to 15.6.5), and
  /// 421 (section 15.5.20).
  package static func isFailure(_ status: Int) -> Bool {
    // One comparison for nearly all answers.
    status >= 421 && (status == 421 || (502...504).contains(status))
  }

  /// Decides after an attempt.
  ///
  /// - Parameters:
  ///   - outcome: what became of it.
  ///   - request: what was sent.
  ///   - attempts: how many attempts the call has made, this one included.
  ///   - waits: how often it has waited for the budget since the last one.
  ///   - now: the present moment.
  ///   - deadline: when the call has to be over.
  ///   - shortest: the least time that an attempt takes, asked for when there is a deadline for a further one. It must
  ///     not be more than what an attempt can take: a retry is refused by it.
  ///   - wall: the present moment by the calendar.
  ///   - budget: from which a retry is taken, when everything else speaks for it.
  package mutating func decide(
    after outcome: Outcome, of request: NetOptRequest, attempts: Int, waits: Int = 0,
    at now: MonotonicInstant, until deadline: MonotonicInstant?, shortest: @autoclosure () -> Duration,
    wall: @autoclosure () -> Date, budget: inout RetryBudget
  ) -> Decision {
    let status: Int?
    var asked: Duration?
    var wasRefused = false
    switch outcome {
    case .success(let response):
      guard Self.isFailure(response.status) else { return .giveUp(.final) }
      status = response.status
      asked = RetryAfter.delay(response.head, wall: wall)
    case .failure(let error):
      if let reason = Self.finality(of: error, request) { return .giveUp(reason) }
      status = nil
      wasRefused = Self.wasRefused(error)
    }
    guard request.mayBeRepeated || wasRefused && !request.body.isStream else {
      return .giveUp(.mayNotBeRepeated)
    }
    guard attempts < request.options.maxAttempts else { return .giveUp(.attemptsUsedUp) }
    // Another connection is all that 421 asks for, and there is no use in asking for it twice.
    if status == 421 {
      if attempts > 1 { return .giveUp(.final) }
      asked = .zero
    }
    if let asked, asked > Self.longestWait { return .giveUp(.toldToWait(asked)) }
    let delay =
      if let asked { jittered(asked) } else {
        wait(before: attempts, isAnswered: status != nil || wasRefused)
      }
    if let deadline {
      let shortage = Shortage(left: max(deadline - now, .zero), wait: delay, attempt: shortest())
      if now + delay + shortage.attempt >= deadline { return .giveUp(.noTimeLeft(shortage)) }
    }
    if Self.isPaid(outcome) || budget.take(at: now) {
      return .again(after: delay, onFreshConnection: status == 421)
    }
    // What answers, be it badly, is given to the caller at once. A failure is worth a wait.
    guard status == nil, waits < Self.mostWaitsForBudget else {
      return .giveUp(.budgetUsedUp(nextFree: budget.nextFree))
    }
    let pause = wait(before: waits + 1, isAnswered: true)
    if let deadline, now + pause + shortest() >= deadline {
      return .giveUp(.budgetUsedUp(nextFree: budget.nextFree))
    }
    return .ask(after: pause)
  }

  /// Whether another attempt was paid for already: by who took the request from an endpoint that had gone silent.
  private static func isPaid(_ outcome: Outcome) -> Bool {
    if case .failure(let error) = outcome { error.route?.winner?.failure?.kind == .silent } else { false }
  }

  /// Why an error is the call's last word, or `nil` when it is that of a connection that failed after the request was sent.
  private static func finality(of error: NetOptError, _ request: NetOptRequest) -> Reason? {
    switch error.code {
    case .sendFailed, .receiveFailed, .protocolViolation: break
    default: return error.isRetryable && error.route?.winner == nil ? .nothingSent : .final
    }
    if error.route?.winner == nil { return wasRefused(error) ? nil : .nothingSent }
    // A body that was a stream, or a method that is not idempotent: told apart from errors that no repeat would mend.
    if !error.isRetryable { return request.mayBeRepeated ? .final : .mayNotBeRepeated }
    return nil
  }

  /// Whether servers refused to process the request, and nobody else was left to take it: without a winner it was not sent otherwise.
  private static func wasRefused(_ error: NetOptError) -> Bool {
    error.code == .sendFailed && error.isRetryable && error.route?.winner == nil
  }

  /// How long to wait when nobody says. A connection that failed says nothing of the others: its request goes elsewhere at
  /// once, the first time. A service that answers that it is in trouble, or refuses requests, gets a moment to recover.
  private mutating func wait(before attempts: Int, isAnswered: Bool) -> Duration {
    let attempts = max(attempts, 1)
    let doublings = isAnswered ? attempts - 1 : attempts - 2
    if doublings < 0 { return .zero }
    let wait = min(Self.firstWait * (1 << min(doublings, 10)), Self.longestOwnWait)
    // Between half and all of it, so that those who failed together do not come back together.
    return wait * Double.random(in: 0.5...1, using: &random)
  }

  /// Up to a tenth longer than a server asked for: it asked others at the same time.
  private mutating func jittered(_ asked: Duration) -> Duration {
    if asked == .zero { return .zero }
    return asked + asked * Double.random(in: 0...0.1, using: &random)
  }
}

extension RetryPolicy.Reason: CustomStringConvertible {
  /// What people are told, or an empty text when there is nothing to tell.
  package var description: String {
    switch self {
    // The outcome itself and the report of the attempts tell these.
    case .final, .nothingSent, .mayNotBeRepeated, .attemptsUsedUp: ""
    case .noTimeLeft(let shortage): shortage.description
    case .toldToWait(let time):
      "the server asks for a wait of \(time.shown), and a call waits \(RetryPolicy.longestWait.shown) at most"
    case .budgetUsedUp(let time):
      "the client's budget for retries is used up (\(RetryBudget.freePerSecond) a second, and one for every "
        + "\(RetryBudget.callsPerRetry) calls of the last \(RetryBudget.memory.shown)); the next one is free in \(time.shown)"
    }
  }
}

extension RetryPolicy.Shortage: CustomStringConvertible {
  /// What people are told.
  package var description: String {
    if left == .zero { return "the deadline had passed" }
    let left = "\(left.shown) were left before the deadline, and another attempt "
    if attempt == .zero { return left + "begins after a wait of \(wait.shown)" }
    return left + "takes \(attempt.shown) at least" + (wait > .zero ? " after a wait of \(wait.shown)" : "")
  }
}
