import NetOptBench
import Testing

@Suite struct BenchPlanTests {
  @Test("every round of a plan has every target once")
  func completeRounds() {
    for order in BenchPlan(seed: 1, block: .cold, targets: 7).prefix(200) {
      #expect(order.sorted() == Array(0..<7))
    }
  }

  @Test("a plan gives the same orders for the same seed, and other orders for another seed")
  func repeatableOrders() {
    let plan = BenchPlan(seed: 42, block: .warm, targets: 5)
    #expect(Array(plan.prefix(50)) == Array(BenchPlan(seed: 42, block: .warm, targets: 5).prefix(50)))
    #expect(Array(plan.prefix(50)) != Array(BenchPlan(seed: 43, block: .warm, targets: 5).prefix(50)))
  }

  /// Saved runs contain their seed, so the orders for a seed must never change.
  @Test("a plan gives the known orders for a known seed")
  func knownOrders() {
    #expect(
      Array(BenchPlan(seed: 7, block: .cold, targets: 4).prefix(3)) == [
        [0, 3, 1, 2], [3, 0, 1, 2], [0, 1, 2, 3],
      ])
    #expect(
      Array(BenchPlan(seed: 7, block: .warm, targets: 4).prefix(3)) == [
        [0, 1, 3, 2], [2, 0, 1, 3], [1, 3, 0, 2],
      ])
  }

  @Test("a plan puts every target first equally often")
  func firstTargets() {
    var first = [0, 0, 0, 0]
    for order in BenchPlan(seed: 3, block: .warm, targets: 4).prefix(4_000) { first[order[0]] += 1 }
    // Five standard deviations of the binomial distribution with n = 4,000 and p = 1/4.
    #expect(first.allSatisfy { abs($0 - 1_000) < 137 })
  }

  @Test("a plan has rounds for one target and for no target")
  func fewTargets() {
    #expect(Array(BenchPlan(seed: 1, block: .cold, targets: 1).prefix(2)) == [[0], [0]])
    #expect(Array(BenchPlan(seed: 1, block: .cold, targets: 0).prefix(2)) == [[], []])
  }

  @Test("the standard length has enough rounds for a warm p95 and a cold p50")
  func standardLength() {
    #expect(BenchLength.standard.rounds(of: .warm) ?? 0 >= OrderStatistics().needed(for: .p95))
    #expect(BenchLength.standard.rounds(of: .cold) ?? 0 >= OrderStatistics().needed(for: .p50))
    #expect(BenchLength.duration(.seconds(1)).rounds(of: .cold) == nil)
  }
}
