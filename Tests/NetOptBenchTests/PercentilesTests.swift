import NetOptBench
import Testing

@Suite struct PercentilesTests {
  @Test(arguments: Percentiles.reported)
  func theNeededCountIsTheSmallestWithAnUpperLimit(percentile: Int) {
    let share = Double(percentile) / 100
    func miss(_ count: Int) -> Double { (0..<count).reduce(1.0) { product, _ in product * share } }
    let needed = Percentiles.needed(for: percentile)
    #expect(miss(needed) <= 0.025)
    #expect(miss(needed - 1) > 0.025)
  }

  @Test func nearestRankTakesAValueThatWasMeasured() {
    let values: [Int64] = [15, 20, 35, 40, 50]
    let ranks = [5, 30, 40, 50, 100].map { Percentiles.nearestRank($0, of: values, total: 5) }
    #expect(ranks == [15, 20, 20, 35, 50])
  }

  @Test func nearestRankOfOneAndOfNothing() {
    #expect(Percentiles.nearestRank(50, of: [3], total: 1) == 3)
    #expect(Percentiles.nearestRank(50, of: [], total: 0) == nil)
  }
}
