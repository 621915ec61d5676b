import NetOptCore
import Testing

@testable import NetOptRouting

@Suite struct RetryBudgetTests {
  /// The moment this many seconds after the start of a test.
  private func moment(_ seconds: Double) -> MonotonicInstant {
    MonotonicInstant(nanoseconds: 1_000_000_000_000) + .seconds(seconds)
  }

  /// Takes retries from the budget until it allows no more at this moment. Returns their number.
  private func all(_ budget: inout RetryBudget, at now: MonotonicInstant) -> Int {
    var taken = 0
    while taken < 1_000_000, budget.take(at: now) { taken += 1 }
    return taken
  }

  @Test("a new budget allows ten retries")
  func newBudget() {
    var budget = RetryBudget(at: moment(0))
    #expect(all(&budget, at: moment(0)) == 10)
  }

  @Test("a budget gains ten free retries a second, and saves ten at most")
  func freeRetries() {
    var budget = RetryBudget(at: moment(0))
    _ = all(&budget, at: moment(0))
    #expect(all(&budget, at: moment(0.05)) == 0)
    #expect(all(&budget, at: moment(0.1)) == 1)
    #expect(all(&budget, at: moment(0.6)) == 5)
    #expect(all(&budget, at: moment(3600)) == 10)
  }

  @Test("every fifth call pays for a retry")
  func paidRetries() {
    var budget = RetryBudget(at: moment(0))
    for _ in 0..<1000 { budget.callBegins(at: moment(0)) }
    #expect(all(&budget, at: moment(0)) == 10 + 200)
    for _ in 0..<4 { budget.callBegins(at: moment(0)) }
    #expect(all(&budget, at: moment(0)) == 0)
    budget.callBegins(at: moment(0))
    #expect(all(&budget, at: moment(0)) == 1)
  }

  @Test("a call counts for 10 s")
  func callsCountForTenSeconds() {
    var budget = RetryBudget(at: moment(0))
    for second in 0..<10 {
      for _ in 0..<50 { budget.callBegins(at: moment(Double(second))) }
    }
    var nine = budget
    #expect(all(&nine, at: moment(9.9)) == 10 + 100)
    // The calls of the first second no longer count.
    #expect(all(&budget, at: moment(10)) == 10 + 90)
    var late = RetryBudget(at: moment(0))
    for _ in 0..<50 { late.callBegins(at: moment(0)) }
    #expect(all(&late, at: moment(20)) == 10)
  }

  @Test("retries use up the oldest calls first")
  func oldestCalls() {
    var budget = RetryBudget(at: moment(0))
    _ = all(&budget, at: moment(0))
    for _ in 0..<10 { budget.callBegins(at: moment(0)) }
    for _ in 0..<10 { budget.callBegins(at: moment(9)) }
    // Ten retries are free. The calls that would be forgotten next pay for two more.
    var taken = 0
    for _ in 0..<12 where budget.take(at: moment(9)) { taken += 1 }
    #expect(taken == 12)
    #expect(all(&budget, at: moment(10)) == 10 + 2)
  }

  @Test("a moment before the latest one counts as the latest one")
  func earlierMoment() {
    var budget = RetryBudget(at: moment(5))
    _ = all(&budget, at: moment(5))
    for _ in 0..<5 { budget.callBegins(at: moment(0)) }
    #expect(all(&budget, at: moment(1)) == 1)
    #expect(all(&budget, at: moment(5)) == 0)
  }

  /// Random calls and retries. In any period there are at most 0.2 retries for each call of the period and of
  /// the 10 s before it, ten more for each second of the period, and ten free ones.
  @Test("retries are at most 0.2 a call and ten a second, and ten at once", arguments: 1...20)
  func theLoadIsBounded(_ seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var budget = RetryBudget(at: moment(0))
    var now = 0.0
    var calls: [Double] = []
    var retries: [Double] = []
    for _ in 0..<300 {
      now += Double(random.below(1000)) / Double(1 + random.below(60)) / 1000
      if random.below(2) == 0 {
        budget.callBegins(at: moment(now))
        calls.append(now)
      }
      for _ in 0..<random.below(4) where budget.take(at: moment(now)) { retries.append(now) }
    }
    // The periods that begin with a retry and end with this retry or with every eleventh retry after it.
    for (first, start) in retries.enumerated() {
      for (last, end) in retries.enumerated().dropFirst(first) where (last - first) % 11 == 0 {
        let paying = calls.count { $0 > start - 10 && $0 <= end }
        let bound = Double(paying) * 0.2 + 10 * (end - start) + 10
        #expect(Double(last - first + 1) <= bound + 0.001)
      }
    }
  }
}
