import NetOptCore
import NetOptRouting

/// Performs a call that makes, or may make, more than one attempt: retries, a hedge beside the first attempt,
/// or both.
struct RepeatedCall {
  let request: NetOptRequest
  /// The rest of the chain after the retry interceptor.
  let chain: InterceptorChain
  /// Performs each attempt.
  let route: RouteInterceptor
  let retries: Retries
  /// The reports of the attempts that have ended and do not give the call its outcome.
  var others: [AttemptReport] = []
  /// The number of attempts that have begun.
  var attempts = 1
  /// The attempt whose outcome becomes the outcome of the call, unless a retry follows.
  var last = Attempt(1, .first)
  /// When `last` began, since the start of the call.
  var started = Duration.zero
  /// The addresses at which attempts of this call have failed. Each retry tries these addresses last.
  var avoided: [IPAddress] = []

  init(_ request: NetOptRequest, _ chain: InterceptorChain, _ route: RouteInterceptor, _ retries: Retries) {
    self.request = request
    self.chain = chain
    self.route = route
    self.retries = retries
  }

  /// The time since the call began.
  var time: Duration { retries.timeSource.now() - chain.started }

  /// Repeats the request until the policy allows no further attempt. The policy allows none after a good
  /// response. Also ends when the caller cancels and when the client shuts down.
  ///
  /// - Parameter previous: the outcome of `last`, the attempt that ended last.
  /// - Returns: the outcome of the call, with the reports of its other attempts.
  mutating func retry(after previous: consuming RetryPolicy.Outcome) async -> RetryPolicy.Outcome {
    var outcome = consume previous
    while true {
      let decision = await decision(after: outcome)
      guard case .retry(let delay, let onFreshConnection) = decision else {
        return outcome.with(others, adding: explanation(of: decision))
      }
      let report = outcome.report(last, from: started, to: time)
      others.append(report)
      avoided += outcome.failedAddresses
      // Releases the response, which ends its transfer.
      outcome = .failure(Self.cancelled(report.route))
      for observer in retries.observers { observer.callWillRetry(chain.context.id, report, after: delay) }
      await retries.wait(delay)
      if Task.isCancelled { return outcome.with(others, adding: nil) }
      if retries.isStopped { return RetryPolicy.Outcome.failure(.shutDown).with(others, adding: nil) }
      attempts += 1
      last = Attempt(attempts, .retry, avoiding: .init(avoided))
      started = time
      outcome = await perform(last, onFreshConnection: onFreshConnection)
    }
  }

  /// Asks the policy what follows the attempt with this outcome. While the policy answers `decideLater`,
  /// because the retry budget is used up, this function waits and asks again.
  private func decision(after outcome: RetryPolicy.Outcome) async -> RetryPolicy.Decision {
    var waits = 0
    while true {
      let decision = retries.decide(
        after: outcome, of: request, attempts: attempts, waits: waits, until: chain.deadline,
        shortest: route.router.leastAttempt(after: outcome, avoiding: avoided))
      guard case .decideLater(let pause) = decision else { return decision }
      waits += 1
      await retries.wait(pause)
      // After a cancellation or a shutdown, this function does not ask the policy again. It returns `.retry`.
      // `retry(after:)` then finds the cancellation or the shutdown, ends the call and sends nothing.
      if Task.isCancelled || retries.isStopped { return .retry(after: .zero, onFreshConnection: false) }
    }
  }

  /// The sentence for the error message that says why the policy gave up. `nil` when the policy did not give
  /// up, or when the outcome itself already says why.
  private func explanation(of decision: RetryPolicy.Decision) -> String? {
    guard case .giveUp(let reason) = decision, !reason.description.isEmpty else { return nil }
    return "the request was not sent again, because \(reason)"
  }

  /// Performs one attempt.
  ///
  /// - Parameters:
  ///   - attempt: the attempt; `nil` for the first attempt of a call that gets no hedge.
  ///   - onFreshConnection: whether to send the request on a new connection.
  func perform(_ attempt: Attempt?, onFreshConnection: Bool = false) async -> RetryPolicy.Outcome {
    var chain = chain
    chain.context.attempt = attempt
    var request = request
    // A fresh connection is closed after the request, so the pool does not change.
    if onFreshConnection { request.options.connection = .fresh }
    do throws(NetOptError) {
      return .success(try await route.intercept(request, next: chain))
    } catch {
      return .failure(error)
    }
  }

  /// The error of a call that was cancelled while it waited for a retry.
  private static func cancelled(_ route: RouteReport?) -> NetOptError {
    NetOptError(
      .cancelled, phase: .send, "the call was cancelled while it waited for a retry", route: route)
  }
}
