import NetOptCore
import NetOptRouting

extension RepeatedCall {
  /// An event that `firstAttempt` handles.
  private enum Event: Sendable {
    /// The wait after which the first attempt counts as slow is over. Its time has passed, or the caller's
    /// cancellation, the shutdown of the client or `firstAttempt` itself has ended it early.
    case slow
    /// An attempt has ended with this outcome.
    case ended(Attempt, RetryPolicy.Outcome)
  }

  /// Performs the first attempt. When this attempt takes longer than `Retries.slowAnswer`, starts a hedge: a
  /// second attempt, at another endpoint. The attempt that gets a good response first wins, and the loser is
  /// cancelled. A response is good when its status needs no retry.
  ///
  /// - Returns: the good response that came first. If no attempt got a good response, the outcome of the
  ///   attempt that ended last.
  mutating func firstAttempt() async -> RetryPolicy.Outcome {
    let origin = request.url.origin
    let mayBeCopied = request.mayBeRepeated && request.options.maxAttempts > 1
    let slow = mayBeCopied ? retries.slowAnswer(of: origin) : nil
    started = time
    guard let slow else {
      let outcome = await perform(nil)
      learn(outcome, since: started)
      return outcome
    }
    let (call, first) = (self, last)
    return await withTaskGroup(of: Event.self) { group in
      group.addTask { .ended(first, await call.perform(first)) }
      group.addTask {
        await call.retries.wait(slow)
        return .slow
      }
      var answer: RetryPolicy.Outcome?
      var starts = [first.number: started]
      var underWay = 1
      for await event in group {
        switch event {
        case .slow:
          // The wait also ends when the caller cancels and when the client shuts down. Then no hedge is sent.
          guard answer == nil, underWay == 1, attempts == 1, !Task.isCancelled, !retries.isStopped,
            let hedge = hedge(beside: first)
          else {
            continue
          }
          attempts = hedge.number
          underWay += 1
          starts[hedge.number] = time
          for observer in retries.observers { observer.callWillHedge(chain.context.id, after: slow) }
          group.addTask { .ended(hedge, await call.perform(hedge)) }
        case .ended(let attempt, let outcome):
          underWay -= 1
          let start = starts[attempt.number] ?? started
          let isOvertaken = answer != nil && outcome.isUnused
          // When the hedge wins, the time until the cancellation of the first attempt counts as its latency.
          // Otherwise the latencies would lack the slow attempts.
          if attempt === first {
            isOvertaken ? retries.recordResponseTime(time - start, of: origin) : learn(outcome, since: start)
          }
          if answer == nil, outcome.isAnswer || underWay == 0 {
            answer = outcome
            (last, started) = (attempt, start)
            // Cancels the other attempt and the wait.
            group.cancelAll()
          } else {
            others.append(outcome.report(attempt, from: start, to: time, isOvertaken: isOvertaken))
            if !isOvertaken { avoided += outcome.failedAddresses }
          }
        }
      }
      others.sort { $0.number < $1.number }
      guard let answer else { preconditionFailure("an attempt ended without an outcome") }
      return answer
    }
  }

  /// Makes the attempt for a hedge, which leaves out the endpoint of the first attempt, and takes its cost
  /// from the retry budget.
  ///
  /// - Returns: `nil` when the endpoint of the first attempt is not known, when the plan has no other leg, or
  ///   when the retry budget does not allow a hedge.
  private func hedge(beside first: Attempt) -> Attempt? {
    guard let plan = first.plan, let address = first.remote?.address ?? plan.legs[0].address else {
      return nil
    }
    let avoidance = RoutePlan.Avoidance([address], isStrict: true)
    return plan.avoiding(avoidance) != nil && retries.takeHedge()
      ? Attempt(first.number + 1, .hedge, avoiding: avoidance) : nil
  }

  /// If an attempt got a good response, records the time until that response began as a latency of the
  /// origin.
  ///
  /// - Parameter start: when the attempt began, since the start of the call.
  private func learn(_ outcome: RetryPolicy.Outcome, since start: Duration) {
    if outcome.isAnswer { retries.recordResponseTime(time - start, of: request.url.origin) }
  }
}

extension RetryPolicy.Outcome {
  /// Whether the outcome is a good response: one whose status needs no retry.
  fileprivate var isAnswer: Bool {
    if case .success(let response) = self { !RetryPolicy.isFailure(response.status) } else { false }
  }

  /// Whether the outcome is a response or a cancellation. When another attempt has won before, such an
  /// outcome is unused, and it is not a failure of the endpoint.
  fileprivate var isUnused: Bool {
    switch self {
    case .success: true
    case .failure(let error): error.code == .cancelled
    }
  }
}
