import NetOptCore
import Testing

@testable import NetOptRouting

@Suite struct RetryBudgetTests {
  private func moment(_ seconds: Double) -> MonotonicInstant {
    MonotonicInstant(nanoseconds: 1_000_000_000_000) + .seconds(seconds)
  }

  /// How many retries in a row there is enough for.
  private func all(_ budget: inout RetryBudget, at now: MonotonicInstant) -> Int {
    var taken = 0
    while taken < 1_000_000, budget.take(at: now) { taken += 1 }
    return taken
  }

  @Test func tenAreFreeAtFirst() {
    var budget = RetryBudget(at: moment(0))
    #expect(all(&budget, at: moment(0)) == 10)
  }

  @Test func tenAreFreeEachSecondAndNoMoreAreSaved() {
    var budget = RetryBudget(at: moment(0))
    _ = all(&budget, at: moment(0))
    #expect(all(&budget, at: moment(0.05)) == 0)
    #expect(all(&budget, at: moment(0.1)) == 1)
    #expect(all(&budget, at: moment(0.6)) == 5)
    #expect(all(&budget, at: moment(3600)) == 10)
  }

  @Test func everyFifthCallPaysForOne() {
    var budget = RetryBudget(at: moment(0))
    for _ in 0..<1000 { budget.callBegins(at: moment(0)) }
    #expect(all(&budget, at: moment(0)) == 10 + 200)
    for _ in 0..<4 { budget.callBegins(at: moment(0)) }
    #expect(all(&budget, at: moment(0)) == 0)
    budget.callBegins(at: moment(0))
    #expect(all(&budget, at: moment(0)) == 1)
  }

  @Test func callsCountForTenSeconds() {
    var budget = RetryBudget(at: moment(0))
    for second in 0..<10 {
      for _ in 0..<50 { budget.callBegins(at: moment(Double(second))) }
    }
    var nine = budget
    #expect(all(&nine, at: moment(9.9)) == 10 + 100)
    // The first second's calls are forgotten.
    #expect(all(&budget, at: moment(10)) == 10 + 90)
    var late = RetryBudget(at: moment(0))
    for _ in 0..<50 { late.callBegins(at: moment(0)) }
    #expect(all(&late, at: moment(20)) == 10)
  }

  @Test func theOldestCallsAreUsedFirst() {
    var budget = RetryBudget(at: moment(0))
    _ = all(&budget, at: moment(0))
    for _ in 0..<10 { budget.callBegins(at: moment(0)) }
    for _ in 0..<10 { budget.callBegins(at: moment(9)) }
    // Ten are free, and two more are paid for by the calls that would be forgotten next.
    var taken = 0
    for _ in 0..<12 where budget.take(at: moment(9)) { taken += 1 }
    #expect(taken == 12)
    #expect(all(&budget, at: moment(10)) == 10 + 2)
  }

  @Test func aMomentThatGoesBackCountsAsTheLatest() {
    var budget = RetryBudget(at: moment(5))
    _ = all(&budget, at: moment(5))
    for _ in 0..<5 { budget.callBegins(at: moment(0)) }
    #expect(all(&budget, at: moment(1)) == 1)
    #expect(all(&budget, at: moment(5)) == 0)
  }

  /// Whatever comes when: over any time there are at most 0.2 for each call of that time and of the ten seconds before, and
  /// ten a second besides.
  @Test(arguments: 1...20)
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
    for (first, start) in retries.enumerated() {
      for (last, end) in retries.enumerated().dropFirst(first) where (last - first) % 11 == 0 {
        let paying = calls.count { $0 > start - 10 && $0 <= end }
        let bound = Double(paying) * 0.2 + 10 * (end - start) + 10
        #expect(Double(last - first + 1) <= bound + 0.001)
      }
    }
  }
}
