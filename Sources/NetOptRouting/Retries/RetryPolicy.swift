package import FoundationEssentials
package import NetOptCore

/// Decides whether a call sends its request again after a failed attempt. The policy sends nothing and reads
/// no clock: callers pass events with their moments, and get decisions.
///
/// A request is sent again only when it may be repeated, or when no server processed it. A failure before
/// anything was sent is no reason for a retry: the race has tried every leg by then (docs/adr/0015).
package struct RetryPolicy: Sendable {
  /// The outcome of an attempt.
  package typealias Outcome = Result<NetOptResponse, NetOptError>

  /// The decision after an attempt.
  package enum Decision: Hashable, Sendable {
    /// Return the outcome to the caller.
    case giveUp(Reason)
    /// Send the request again.
    ///
    /// - after: the wait before the attempt.
    /// - onFreshConnection: whether the attempt must use a new connection, not a pooled one.
    case retry(after: Duration, onFreshConnection: Bool)
    /// Wait for this time and decide again. The budget is used up now, and may suffice by then.
    case decideLater(after: Duration)
  }

  /// Why a request is not sent again.
  package enum Reason: Hashable, Sendable {
    /// The outcome is a response that calls for no retry, or another attempt would not change the outcome.
    case final
    /// No leg won the race. Another attempt would try the same legs: the race has tried all of them, or has
    /// run until the deadline.
    case nothingSent
    /// The request may not be repeated: its method is not idempotent and it has no `Idempotency-Key`, or its
    /// body is a stream.
    case mayNotBeRepeated
    /// The call has made as many attempts as its options allow.
    case attemptsUsedUp
    /// Another attempt could not end before the deadline.
    case noTimeLeft(Shortage)
    /// The server asks for a wait that is longer than `longestWait`.
    case retryAfterTooLong(Duration)
    /// The retry budget is used up. The next free retry is available after this time.
    case budgetUsedUp(nextFree: Duration)
  }

  /// Why there is no time for another attempt.
  package struct Shortage: Hashable, Sendable {
    /// The time that was left until the deadline of the call; at least zero.
    package let left: Duration
    /// The wait before the attempt.
    package let wait: Duration
    /// The shortest duration of the attempt itself; zero when it is unknown.
    package let attempt: Duration
  }

  /// The longest wait that a server may ask for in `Retry-After`. When a server asks for a longer wait, the
  /// caller gets the response of this server.
  package static let longestWait = Duration.seconds(10)
  /// The wait before the second attempt when it has to wait, before jitter. It doubles with each attempt.
  static let firstWait = Duration.milliseconds(50)
  /// The longest wait that the policy chooses by itself, before jitter. A server may ask for a longer one.
  static let longestOwnWait = Duration.seconds(2)
  /// How often a call waits for the budget after one attempt. Together these waits take 0.8 to 1.6 s: enough
  /// to repeat the requests of a burst of failures, and too little for calls to pile up when nothing works.
  static let mostWaitsForBudget = 5

  /// The source of the jitter of waits.
  private var random: SplitMix64

  /// Makes a policy.
  ///
  /// - Parameter seed: the seed of the policy's random numbers. Give each client a different seed.
  package init(seed: UInt64) { random = SplitMix64(seed: seed) }

  /// Whether a response with this status may be a reason to send the request again: 502, 503, 504 (RFC 9110,
  /// sections 15.6.3 to 15.6.5), and 421 (section 15.5.20).
  package static func isFailure(_ status: Int) -> Bool {
    // One comparison is enough for nearly all responses.
    status >= 421 && (status == 421 || (502...504).contains(status))
  }

  /// Decides after an attempt.
  ///
  /// - Parameters:
  ///   - outcome: the outcome of the attempt.
  ///   - request: the request that was sent.
  ///   - attempts: the number of attempts that the call has made, this one included.
  ///   - waits: how often the call has waited for the budget since this attempt.
  ///   - now: the present moment.
  ///   - deadline: the deadline of the call; `nil` for a call without one.
  ///   - shortest: a lower bound of the duration of an attempt. The policy refuses a retry when not even this
  ///     time is left before the deadline. Evaluated when there is a deadline and another attempt is
  ///     possible.
  ///   - wall: the present moment as a calendar date.
  ///   - budget: the retry budget. The policy takes the retry from it last, when nothing else forbids the
  ///     retry.
  package mutating func decide(
    after outcome: Outcome, of request: NetOptRequest, attempts: Int, waits: Int = 0,
    at now: MonotonicInstant, until deadline: MonotonicInstant?, shortest: @autoclosure () -> Duration,
    wall: @autoclosure () -> Date, budget: inout RetryBudget
  ) -> Decision {
    let status: Int?
    var asked: Duration?
    var wasUnprocessed = false
    switch outcome {
    case .success(let response):
      guard Self.isFailure(response.status) else { return .giveUp(.final) }
      status = response.status
      asked = RetryAfter.delay(response.head, wall: wall)
    case .failure(let error):
      if let reason = Self.finalReason(for: error, request) { return .giveUp(reason) }
      status = nil
      wasUnprocessed = Self.wasUnprocessed(error)
    }
    guard request.mayBeRepeated || wasUnprocessed && request.body.isRepeatable else {
      return .giveUp(.mayNotBeRepeated)
    }
    guard attempts < request.options.maxAttempts else { return .giveUp(.attemptsUsedUp) }
    // A 421 response asks only for another connection. When the retry on a new connection gets a 421 too, a
    // further retry is useless.
    if status == 421 {
      if attempts > 1 { return .giveUp(.final) }
      asked = .zero
    }
    if let asked, asked > Self.longestWait { return .giveUp(.retryAfterTooLong(asked)) }
    let delay =
      if let asked { jittered(asked) } else {
        wait(before: attempts, givesTime: status != nil || wasUnprocessed)
      }
    if let deadline {
      let shortage = Shortage(left: max(deadline - now, .zero), wait: delay, attempt: shortest())
      if now + delay + shortage.attempt >= deadline { return .giveUp(.noTimeLeft(shortage)) }
    }
    if Self.isPaid(outcome) || budget.take(at: now) {
      return .retry(after: delay, onFreshConnection: status == 421)
    }
    // A response, even a bad one, goes to the caller at once. A failure is worth a wait.
    guard status == nil, waits < Self.mostWaitsForBudget else {
      return .giveUp(.budgetUsedUp(nextFree: budget.nextFree))
    }
    let pause = wait(before: waits + 1, givesTime: true)
    if let deadline, now + pause + shortest() >= deadline {
      return .giveUp(.budgetUsedUp(nextFree: budget.nextFree))
    }
    return .decideLater(after: pause)
  }

  /// Whether this retry takes nothing from the budget. `WaitWatch` has already paid for it when it took the
  /// request from a silent endpoint or a dead connection. Or it is free, because the endpoint's kernel had not
  /// acknowledged the request.
  private static func isPaid(_ outcome: Outcome) -> Bool {
    if case .failure(let error) = outcome { error.route?.winner?.failure?.kind == .silent } else { false }
  }

  /// The reason why the call ends with this error; `nil` when another attempt may help. Another attempt may
  /// help in two cases. In the first case, the request was sent and got no correct response. In the second
  /// case, no server processed the request.
  private static func finalReason(for error: NetOptError, _ request: NetOptRequest) -> Reason? {
    switch error.code {
    case .sendFailed, .receiveFailed, .protocolViolation: break
    default: return error.isRetryable && error.route?.winner == nil ? .nothingSent : .final
    }
    if error.route?.winner == nil { return wasUnprocessed(error) ? nil : .nothingSent }
    // Errors of these codes are not retryable for one of two reasons: the request may not be repeated, or
    // another attempt would fail in the same way.
    if !error.isRetryable { return request.mayBeRepeated ? .final : .mayNotBeRepeated }
    return nil
  }

  /// Whether the gate let a leg send the request, the race then took the request back because no server had
  /// processed it (for example, a refused stream), and no leg was left to send it. After the race takes a
  /// request back, no leg is the winner.
  private static func wasUnprocessed(_ error: NetOptError) -> Bool {
    error.code == .sendFailed && error.isRetryable && error.route?.winner == nil
  }

  /// The wait before a retry when no server asks for a wait. A failed connection says nothing about other
  /// endpoints, so the first retry goes out at once. A service that reports trouble or refuses requests gets
  /// time to recover.
  ///
  /// - Parameters:
  ///   - attempts: the number of attempts so far. For a wait for the budget: the number of waits, this one
  ///     included.
  ///   - givesTime: whether the service needs time to recover, so that the first retry waits too.
  private mutating func wait(before attempts: Int, givesTime: Bool) -> Duration {
    let attempts = max(attempts, 1)
    let doublings = givesTime ? attempts - 1 : attempts - 2
    if doublings < 0 { return .zero }
    let wait = min(Self.firstWait * (1 << min(doublings, 10)), Self.longestOwnWait)
    // Between half of the wait and all of it, so that clients that failed together do not come back together.
    return wait * Double.random(in: 0.5...1, using: &random)
  }

  /// The wait that a server asked for, plus up to a tenth: the server asked other clients at the same time.
  private mutating func jittered(_ asked: Duration) -> Duration {
    if asked == .zero { return .zero }
    return asked + asked * Double.random(in: 0...0.1, using: &random)
  }
}

extension RetryPolicy.Reason: CustomStringConvertible {
  /// The reason in words for users; empty when there is nothing to say.
  package var description: String {
    switch self {
    // The outcome itself and the report of the attempts say this.
    case .final, .nothingSent, .mayNotBeRepeated, .attemptsUsedUp: ""
    case .noTimeLeft(let shortage): shortage.description
    case .retryAfterTooLong(let time):
      "the server asks for a wait of \(time.shown), but a call waits at most \(RetryPolicy.longestWait.shown)"
    case .budgetUsedUp(let time):
      "the client's budget for retries is used up (\(RetryBudget.freePerSecond) a second, and one for every "
        + "\(RetryBudget.callsPerRetry) calls of the last \(RetryBudget.memory.shown)); the next retry is free in \(time.shown)"
    }
  }
}

extension RetryPolicy.Shortage: CustomStringConvertible {
  /// The shortage in words for users.
  package var description: String {
    if left == .zero { return "the deadline had passed" }
    let left = "\(left.shown) were left before the deadline, and another attempt "
    if attempt == .zero { return left + "begins after a wait of \(wait.shown)" }
    return left + "takes \(attempt.shown) at least" + (wait > .zero ? " after a wait of \(wait.shown)" : "")
  }
}
