import NetOptBench
import Testing

@Suite struct BenchPlanTests {
  @Test func everyRoundHasEveryTargetOnce() {
    for order in BenchPlan(seed: 1, block: .cold, targets: 7).prefix(200) {
      #expect(order.sorted() == Array(0..<7))
    }
  }

  @Test func theSeedGivesTheSameOrdersAgain() {
    let plan = BenchPlan(seed: 42, block: .warm, targets: 5)
    #expect(Array(plan.prefix(50)) == Array(BenchPlan(seed: 42, block: .warm, targets: 5).prefix(50)))
    #expect(Array(plan.prefix(50)) != Array(BenchPlan(seed: 43, block: .warm, targets: 5).prefix(50)))
  }

  /// Saved runs name a seed: the orders that it stands for must never change.
  @Test func theOrdersOfASeedStayTheSame() {
    #expect(
      Array(BenchPlan(seed: 7, block: .cold, targets: 4).prefix(3)) == [
        [0, 3, 1, 2], [3, 0, 1, 2], [0, 1, 2, 3],
      ])
    #expect(
      Array(BenchPlan(seed: 7, block: .warm, targets: 4).prefix(3)) == [
        [0, 1, 3, 2], [2, 0, 1, 3], [1, 3, 0, 2],
      ])
  }

  @Test func everyTargetIsEquallyOftenFirst() {
    var first = [0, 0, 0, 0]
    for order in BenchPlan(seed: 3, block: .warm, targets: 4).prefix(4_000) { first[order[0]] += 1 }
    // Five standard deviations of a binomial of 4,000 and 1/4.
    #expect(first.allSatisfy { abs($0 - 1_000) < 137 })
  }

  @Test func oneTargetAndNoneHaveTheirPlans() {
    #expect(Array(BenchPlan(seed: 1, block: .cold, targets: 1).prefix(2)) == [[0], [0]])
    #expect(Array(BenchPlan(seed: 1, block: .cold, targets: 0).prefix(2)) == [[], []])
  }

  @Test func theStandardLengthIsEnoughForWhatTheReportShows() {
    #expect(BenchLength.standard.rounds(of: .warm) ?? 0 >= OrderStatistics().needed(for: .p95))
    #expect(BenchLength.standard.rounds(of: .cold) ?? 0 >= OrderStatistics().needed(for: .p50))
    #expect(BenchLength.duration(.seconds(1)).rounds(of: .cold) == nil)
  }
}
