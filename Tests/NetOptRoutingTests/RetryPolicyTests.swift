import FoundationEssentials
import NetOptCore
import Testing

@testable import NetOptRouting

@Suite struct RetryPolicyTests {
  /// The moment of every decision.
  private static let start = MonotonicInstant(nanoseconds: 1_000_000_000_000)
  private let address = IPAddress(v4: 0x0a00_0001)

  /// The inputs of `RetryPolicy.decide` after an attempt. The parameters of `decide` have the same names. A
  /// test changes those that it is about.
  private final class Question {
    var policy = RetryPolicy(seed: 1)
    var budget = RetryBudget(at: RetryPolicyTests.start)
    var request: NetOptRequest
    /// The number of attempts that the call has made.
    var attempts = 1
    /// How often the call has waited for the budget since the last attempt.
    var waits = 0
    var deadline: MonotonicInstant?
    /// A lower bound of the duration of another attempt.
    var shortest = Duration.zero
    /// How often the policy evaluated `shortest`.
    private(set) var shortestEvaluations = 0
    /// The present moment as a calendar date.
    var wall = Date(timeIntervalSince1970: 0)

    init(_ method: NetOptRequest.Method = .get) throws {
      request = try NetOptRequest(method, "https://a.example/")
    }

    /// Asks the policy about the outcome of an attempt.
    func decide(_ outcome: RetryPolicy.Outcome) -> RetryPolicy.Decision {
      policy.decide(
        after: outcome, of: request, attempts: attempts, waits: waits,
        at: RetryPolicyTests.start,
        until: deadline, shortest: evaluateShortest(), wall: wall, budget: &budget)
    }

    /// Returns `shortest`, and counts the evaluation.
    private func evaluateShortest() -> Duration {
      shortestEvaluations += 1
      return shortest
    }
  }

  /// The report of an attempt with one leg. `sent` says whether the leg won the race, so that it sent the
  /// request.
  private func route(sent: Bool) -> RouteReport {
    let plan = RoutePlan(
      origin: Origin(.https, host: "a.example"), policy: .fastest,
      legs: [RoutePlan.Leg(.address(address), source: .list)])
    let leg = RouteReport.Leg(
      address: address, source: .list, started: .zero, ended: .zero, outcome: sent ? .won : .failed)
    return RouteReport(plan: plan, legs: [leg])
  }

  /// The outcome of an attempt that got a response.
  private func answer(_ status: Int, _ fields: HeaderFields = [:]) throws -> RetryPolicy.Outcome {
    .success(
      NetOptResponse(
        url: try HTTPURL("https://a.example/"), head: ResponseHead(status: status, fields: fields),
        body: ResponseBody([]), route: route(sent: true)))
  }

  /// The outcome of an attempt that failed. `sent` says whether a leg won the race. A retryable `sendFailed`
  /// without a winner means that the servers refused to process the request.
  private func failure(
    _ code: NetOptError.Code, sent: Bool = true, isRetryable: Bool = true
  ) -> RetryPolicy.Outcome {
    .failure(
      NetOptError(code, phase: .send, "it failed", isRetryable: isRetryable, route: route(sent: sent)))
  }

  /// The wait before a retry that may use a pooled connection; `nil` for any other decision.
  private func delay(_ decision: RetryPolicy.Decision) -> Duration? {
    if case .retry(let delay, false) = decision { delay } else { nil }
  }

  /// Why there is no time for a retry; `nil` for any other decision.
  private func shortage(_ decision: RetryPolicy.Decision) -> RetryPolicy.Shortage? {
    if case .giveUp(.noTimeLeft(let shortage)) = decision { shortage } else { nil }
  }

  @Test(
    "a response with a status other than 421, 502, 503 and 504 is final",
    arguments: [200, 204, 301, 304, 400, 404, 408, 420, 422, 425, 429, 500, 501, 505, 511])
  func otherStatuses(_ status: Int) throws {
    let question = try Question()
    #expect(question.decide(try answer(status)) == .giveUp(.final))
    #expect(!RetryPolicy.isFailure(status))
  }

  @Test("the policy asks for the shortest duration of an attempt only when another attempt is possible")
  func shortestOnDemand() throws {
    let question = try Question()
    question.deadline = Self.start + .seconds(1)
    #expect(question.decide(failure(.cancelled)) == .giveUp(.final))
    #expect(question.decide(failure(.connectFailed, sent: false)) == .giveUp(.nothingSent))
    question.attempts = question.request.options.maxAttempts
    #expect(question.decide(try answer(503)) == .giveUp(.attemptsUsedUp))
    #expect(question.shortestEvaluations == 0)
    question.attempts = 1
    #expect(delay(question.decide(try answer(503))) != nil)
    #expect(question.shortestEvaluations == 1)
  }

  @Test(
    "a retry after a 502, 503 or 504 response waits 25 to 50 ms, doubling up to 2 s",
    arguments: [502, 503, 504])
  func waitForService(_ status: Int) throws {
    let question = try Question()
    let first = try #require(delay(question.decide(try answer(status))))
    #expect(first >= .milliseconds(25) && first <= .milliseconds(50))
    question.attempts = 2
    let second = try #require(delay(question.decide(try answer(status))))
    #expect(second >= .milliseconds(50) && second <= .milliseconds(100))
    question.request.options.maxAttempts = 100
    question.attempts = 60
    let late = try #require(delay(question.decide(try answer(status))))
    #expect(late >= .seconds(1) && late <= .seconds(2))
  }

  @Test(
    "the first retry after a failed connection comes at once, the second one after 25 to 50 ms",
    arguments: [NetOptError.Code.sendFailed, .receiveFailed, .protocolViolation])
  func retryAfterBrokenConnection(_ code: NetOptError.Code) throws {
    let question = try Question()
    #expect(question.decide(failure(code)) == .retry(after: .zero, onFreshConnection: false))
    question.attempts = 2
    let second = try #require(delay(question.decide(failure(code))))
    #expect(second >= .milliseconds(25) && second <= .milliseconds(50))
  }

  @Test(
    "errors other than a failed connection are final",
    arguments: [
      NetOptError.Code.cancelled, .timeout, .shutDown, .decodeFailed, .certificateName, .invalidRequest,
      .libraryFailed,
    ])
  func otherErrorsAreFinal(_ code: NetOptError.Code) throws {
    let question = try Question()
    #expect(question.decide(failure(code, isRetryable: code == .timeout)) == .giveUp(.final))
  }

  /// A retryable `sendFailed` without a winning leg means that each server refused to process the request
  /// (for example, a refused stream) and that no leg was left. Even the first retry waits, so that the
  /// servers get time to recover.
  @Test(
    "a request that all servers refused to process is sent again, even a POST, but not a streamed body",
    arguments: [NetOptRequest.Method.get, .post])
  func refusedEverywhere(_ method: NetOptRequest.Method) throws {
    let question = try Question(method)
    let wait = try #require(delay(question.decide(failure(.sendFailed, sent: false))))
    #expect(wait >= .milliseconds(25) && wait <= .milliseconds(50))
    question.attempts = question.request.options.maxAttempts
    #expect(question.decide(failure(.sendFailed, sent: false)) == .giveUp(.attemptsUsedUp))
    question.attempts = 1
    // The beginning of a stream may be gone.
    question.request.body = .stream(AsyncStream { $0.finish() })
    #expect(question.decide(failure(.sendFailed, sent: false)) == .giveUp(.mayNotBeRepeated))
  }

  @Test("no retry follows a failure before anything was sent")
  func nothingSent() throws {
    let question = try Question()
    #expect(question.decide(failure(.connectFailed, sent: false)) == .giveUp(.nothingSent))
    #expect(question.decide(failure(.receiveFailed, sent: false)) == .giveUp(.nothingSent))
    #expect(question.decide(failure(.sendFailed, sent: false, isRetryable: false)) == .giveUp(.nothingSent))
    let post = try Question(.post)
    #expect(post.decide(failure(.connectFailed, sent: false)) == .giveUp(.nothingSent))
  }

  @Test("a POST that was sent is not sent again without an Idempotency-Key", arguments: [421, 502, 503, 504])
  func sentPost(_ status: Int) throws {
    let question = try Question(.post)
    #expect(question.decide(try answer(status)) == .giveUp(.mayNotBeRepeated))
    #expect(question.decide(try answer(status, ["Retry-After": "0"])) == .giveUp(.mayNotBeRepeated))
    #expect(question.decide(failure(.sendFailed, isRetryable: false)) == .giveUp(.mayNotBeRepeated))
    // The property `isRetryable` of the error does not change this.
    #expect(question.decide(failure(.sendFailed, isRetryable: true)) == .giveUp(.mayNotBeRepeated))
    question.request.headers["Idempotency-Key"] = "1"
    if case .giveUp = question.decide(try answer(status)) { Issue.record("a key allows it") }
  }

  @Test("a request with a streamed body is not sent again")
  func streamedBody() throws {
    let question = try Question(.put)
    question.request.body = .stream(AsyncStream<[UInt8]> { $0.finish() })
    #expect(question.decide(try answer(503)) == .giveUp(.mayNotBeRepeated))
    #expect(question.decide(try answer(421)) == .giveUp(.mayNotBeRepeated))
  }

  @Test("the request's options limit the number of attempts")
  func theOptionsLimitTheAttempts() throws {
    let question = try Question()
    question.attempts = 3
    #expect(question.decide(try answer(503)) == .giveUp(.attemptsUsedUp))
    for off in [1, 0, -1] {
      question.request.options.maxAttempts = off
      question.attempts = 1
      #expect(question.decide(failure(.sendFailed)) == .giveUp(.attemptsUsedUp))
    }
  }

  @Test("a 421 response causes one retry on a fresh connection")
  func misdirected() throws {
    let question = try Question()
    #expect(question.decide(try answer(421)) == .retry(after: .zero, onFreshConnection: true))
    question.attempts = 2
    #expect(question.decide(try answer(421)) == .giveUp(.final))
  }

  @Test("a retry waits for a Retry-After of up to 10 s that ends before the deadline")
  func waitForRetryAfter() throws {
    let question = try Question()
    let wait = try #require(delay(question.decide(try answer(503, ["Retry-After": "3"]))))
    #expect(wait >= .seconds(3) && wait <= .seconds(3.3))
    #expect(delay(question.decide(try answer(503, ["Retry-After": "0"]))) == .zero)
    #expect(
      question.decide(try answer(503, ["Retry-After": "11"]))
        == .giveUp(.retryAfterTooLong(.seconds(11))))
    #expect(
      question.decide(try answer(503, ["Retry-After": "99999999999999999999"]))
        == .giveUp(.retryAfterTooLong(.seconds(UInt32.max))))
    question.deadline = Self.start + .seconds(2)
    let shortage = try #require(shortage(question.decide(try answer(503, ["Retry-After": "3"]))))
    #expect(shortage.left == .seconds(2) && shortage.attempt == .zero)
    #expect((.seconds(3) ... .seconds(3.3)).contains(shortage.wait))
  }

  @Test("no attempt begins that cannot end before the deadline")
  func attemptBeforeDeadline() throws {
    let question = try Question()
    question.deadline = Self.start + .milliseconds(80)
    #expect(delay(question.decide(try answer(503))) != nil)
    question.shortest = .milliseconds(60)
    let shortage = try #require(shortage(question.decide(try answer(503))))
    #expect(shortage.left == .milliseconds(80) && shortage.attempt == .milliseconds(60))
    #expect((.milliseconds(25) ... .milliseconds(50)).contains(shortage.wait))
    // Without a wait, the attempt can end in time.
    #expect(delay(question.decide(failure(.sendFailed))) == .zero)
    question.deadline = Self.start
    question.shortest = .zero
    #expect(
      question.decide(failure(.sendFailed))
        == .giveUp(.noTimeLeft(.init(left: .zero, wait: .zero, attempt: .zero))))
  }

  @Test("the description of a reason with a time has the figures behind the decision")
  func reasonDescriptions() {
    func text(_ left: Duration, _ wait: Duration, _ attempt: Duration) -> String {
      RetryPolicy.Reason.noTimeLeft(.init(left: left, wait: wait, attempt: attempt)).description
    }
    #expect(
      text(.milliseconds(12), .zero, .milliseconds(30))
        == "12 ms were left before the deadline, and another attempt takes 30 ms at least")
    #expect(
      text(.milliseconds(1900), .milliseconds(3200), .milliseconds(30))
        == "1.9 s were left before the deadline, and another attempt takes 30 ms at least after a wait of 3.2 s"
    )
    #expect(
      text(.milliseconds(400), .milliseconds(3200), .zero)
        == "400 ms were left before the deadline, and another attempt begins after a wait of 3.2 s")
    #expect(text(.zero, .zero, .milliseconds(30)) == "the deadline had passed")
    #expect(
      RetryPolicy.Reason.retryAfterTooLong(.seconds(10.4)).description
        == "the server asks for a wait of 10.4 s, but a call waits at most 10 s")
    #expect(
      RetryPolicy.Reason.budgetUsedUp(nextFree: .milliseconds(80)).description
        == "the client's budget for retries is used up (10 a second, and one for every 5 calls of the last 10 s); "
        + "the next retry is free in 80 ms")
  }

  @Test("only a retry that is made uses the budget")
  func paidRetries() throws {
    let question = try Question()
    question.attempts = 3
    for _ in 0..<100 { _ = question.decide(try answer(503)) }
    question.attempts = 1
    for _ in 0..<10 { #expect(delay(question.decide(try answer(503))) != nil) }
    // The budget has ten free retries a second.
    let nextFree = Duration.milliseconds(100)
    #expect(question.decide(try answer(503)) == .giveUp(.budgetUsedUp(nextFree: nextFree)))
    question.waits = RetryPolicy.mostWaitsForBudget
    #expect(question.decide(failure(.sendFailed)) == .giveUp(.budgetUsedUp(nextFree: nextFree)))
  }

  @Test(
    "a failed call waits for the budget for 0.75 to 1.6 s, and never beyond its deadline",
    arguments: 0..<50 as Range<UInt64>)
  func waitForBudget(_ seed: UInt64) throws {
    let question = try Question()
    question.policy = RetryPolicy(seed: seed)
    while question.budget.take(at: Self.start) {}
    var waited = Duration.zero
    while case .decideLater(let pause) = question.decide(failure(.sendFailed)) {
      waited += pause
      question.waits += 1
    }
    #expect((.milliseconds(750) ... .milliseconds(1600)).contains(waited), "\(waited)")
    question.waits = 0
    question.deadline = Self.start + .milliseconds(Int64(seed))
    question.shortest = .milliseconds(10)
    if case .decideLater(let pause) = question.decide(failure(.sendFailed)) {
      #expect(pause + .milliseconds(10) < .milliseconds(Int64(seed)))
    }
  }

  @Test("a Retry-After date counts from the Date field or the clock, and invalid values are ignored")
  func retryAfterDate() throws {
    let head = ResponseHead(
      status: 503,
      fields: ["Date": "Fri, 20 Nov 2026 00:00:00 GMT", "Retry-After": "Fri, 20 Nov 2026 00:00:07 GMT"])
    #expect(RetryAfter.delay(head) { Date(timeIntervalSince1970: 0) } == .seconds(7))
    let bare = ResponseHead(status: 503, fields: ["Retry-After": "Fri, 20 Nov 2026 00:00:07 GMT"])
    #expect(RetryAfter.delay(bare) { Date(timeIntervalSince1970: 1_795_132_800) } == .seconds(7))
    #expect(RetryAfter.delay(bare) { Date(timeIntervalSince1970: 1_795_132_900) } == .zero)
    for odd in ["-1", "1.5", "3 s", "soon"] {
      #expect(RetryAfter.delay(ResponseHead(status: 503, fields: ["Retry-After": odd])) { Date() } == nil)
    }
  }
}
