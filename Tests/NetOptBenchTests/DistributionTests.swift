import NetOptBench
import Testing

@Suite struct DistributionTests {
  @Test func describesValues() {
    let found = Distribution([9, 1, 4, 4, 2, 100])
    #expect(found.count == 6)
    #expect(found.minimum == 1)
    #expect(found.maximum == 100)
    #expect(found.mean == 20)
    #expect(found.value(50) == 4)
    // The distances from 4, sorted: 0 0 2 3 5 96.
    #expect(found.deviation == 2)
  }

  @Test(arguments: [
    (5, []), (6, [50]), (35, [50]), (36, [50, 90]), (72, [50, 90, 95]), (368, [50, 90, 95, 99]),
  ])
  func aPercentileNeedsEnoughValues(count: Int, percentiles: [Int]) {
    let found = Distribution(Array(1...Int64(count)))
    #expect(found.percentiles.map(\.percentile) == percentiles)
  }

  @Test func ofNothingThereIsNothing() {
    let found = Distribution([])
    #expect(found.count == 0 && found.percentiles.isEmpty)
    #expect(found.minimum == nil && found.maximum == nil && found.mean == nil && found.deviation == nil)
  }

  @Test func timeoutsAreTheLargestValues() {
    let found = Distribution(Array(1...30), timeouts: 10)
    #expect(found.value(50) == 20)
    #expect(found.percentiles.map(\.percentile) == [50, 90])
    #expect(found.value(90) == nil)
    #expect(found.maximum == 30)
    #expect(Distribution([1, 2], timeouts: 6).value(50) == nil)
  }
}
