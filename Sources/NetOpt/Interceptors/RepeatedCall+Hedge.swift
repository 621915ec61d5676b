import NetOptCore
import NetOptRouting

extension RepeatedCall {
  private enum Event: Sendable {
    /// The first attempt is slow.
    case slow
    /// An attempt has ended.
    case ended(Attempt, RetryPolicy.Outcome)
  }

  /// Performs the first attempt, and sends a hedge to another endpoint when the attempt is slow. The first
  /// good response wins.
  ///
  /// - Returns: the first good response; if there is none, the outcome of the attempt that ended last.
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
          // The wait ends early when the caller cancels, and when the client shuts down.
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
          // For a cancelled attempt, the time until its cancellation counts as its latency. Otherwise slow
          // attempts would never count.
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

  /// The hedge to send; `nil` when there is no other endpoint, or when the budget does not allow a hedge.
  private func hedge(beside first: Attempt) -> Attempt? {
    guard let plan = first.plan, let address = first.remote?.address ?? plan.legs[0].address else {
      return nil
    }
    let avoidance = RoutePlan.Avoidance([address], isStrict: true)
    return plan.avoiding(avoidance) != nil && retries.takeHedge()
      ? Attempt(first.number + 1, .hedge, avoiding: avoidance) : nil
  }

  /// Records how long a good response took.
  private func learn(_ outcome: RetryPolicy.Outcome, since start: Duration) {
    if outcome.isAnswer { retries.recordResponseTime(time - start, of: request.url.origin) }
  }
}

extension RetryPolicy.Outcome {
  /// Whether the outcome is a good response: one that needs no retry.
  fileprivate var isAnswer: Bool {
    if case .success(let response) = self { !RetryPolicy.isFailure(response.status) } else { false }
  }

  /// Whether the outcome is a response that came too late, or the end of a cancelled attempt.
  fileprivate var isUnused: Bool {
    switch self {
    case .success: true
    case .failure(let error): error.code == .cancelled
    }
  }
}
