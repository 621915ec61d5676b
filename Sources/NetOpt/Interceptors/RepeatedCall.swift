import NetOptCore
import NetOptRouting

/// A call whose first attempt has failed, or may get a second one beside it.
struct RepeatedCall {
  let request: NetOptRequest
  let chain: InterceptorChain
  let route: RouteInterceptor
  let retries: Retries
  /// The attempts that are over and whose outcome is not the call's.
  var others: [AttemptReport] = []
  /// How many attempts there have been.
  var attempts = 1
  /// The last one that ended.
  var last = Attempt(1, .first)
  /// When that began.
  var started = Duration.zero
  /// Where further ones had better not go.
  var avoided: [IPAddress] = []

  init(_ request: NetOptRequest, _ chain: InterceptorChain, _ route: RouteInterceptor, _ retries: Retries) {
    self.request = request
    self.chain = chain
    self.route = route
    self.retries = retries
  }

  /// The time since the call began.
  var time: Duration { retries.timeSource.now() - chain.started }

  /// Makes further attempts until one goes well, or there is to be none.
  ///
  /// - Parameter first: the outcome of the last attempt so far.
  mutating func goOn(after first: consuming RetryPolicy.Outcome) async -> RetryPolicy.Outcome {
    var outcome = consume first
    while true {
      let decision = await decision(after: outcome)
      guard case .again(let delay, let onFreshConnection) = decision else {
        return outcome.with(others, adding: words(for: decision))
      }
      let report = outcome.report(last, from: started, to: time)
      others.append(report)
      avoided += outcome.failedAddresses
      // Lets go of the response: that ends its transfer, so that nothing of it comes any more.
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

  /// What the policy says once the budget has what a retry costs, or is not worth waiting for any longer.
  private func decision(after outcome: RetryPolicy.Outcome) async -> RetryPolicy.Decision {
    var waits = 0
    while true {
      let decision = retries.decide(
        after: outcome, of: request, attempts: attempts, waits: waits, until: chain.deadline,
        shortest: route.router.leastAttempt(after: outcome, avoiding: avoided))
      guard case .ask(let pause) = decision else { return decision }
      waits += 1
      await retries.wait(pause)
      // The caller of `decision` sees that the call was cancelled, and sends nothing.
      if Task.isCancelled || retries.isStopped { return .again(after: .zero, onFreshConnection: false) }
    }
  }

  private func words(for decision: RetryPolicy.Decision) -> String? {
    guard case .giveUp(let reason) = decision, !reason.description.isEmpty else { return nil }
    return "it was not sent again, because \(reason)"
  }

  /// Performs one attempt.
  func perform(_ attempt: Attempt?, onFreshConnection: Bool = false) async -> RetryPolicy.Outcome {
    var chain = chain
    chain.context.attempt = attempt
    var request = request
    // Closed afterwards, so that the pool is left as it was.
    if onFreshConnection { request.options.connection = .fresh }
    do throws(NetOptError) {
      return .success(try await route.intercept(request, next: chain))
    } catch {
      return .failure(error)
    }
  }

  private static func cancelled(_ route: RouteReport?) -> NetOptError {
    NetOptError(
      .cancelled, phase: .send, "the call was cancelled while it waited to be sent again", route: route)
  }
}
