import NetOptBench
import Testing

@Suite struct DistributionTests {
  @Test func describesValues() {
    let found = Distribution([9, 1, 4, 4, 2, 100])
    #expect(found.count == 6)
    #expect(found.minimum == 1)
    #expect(found.maximum == 100)
    #expect(found.mean == 20)
    #expect(found.value(.p50) == 4)
    // The distances from 4, sorted: 0 0 2 3 5 96.
    #expect(found.deviation == 2)
  }

  @Test(arguments: [
    (5, []), (6, [.p50]), (35, [.p50]), (36, [.p50, .p90]), (72, [.p50, .p90, .p95]),
    (368, [.p50, .p90, .p95, .p99]), (3688, Percentile.reported),
  ])
  func aPercentileNeedsEnoughValues(count: Int, percentiles: [Percentile]) {
    let found = Distribution(Array(1...Int64(count)))
    #expect(found.percentiles.map(\.percentile) == percentiles)
  }

  @Test func anIntervalEndsAtValuesThatWereMeasured() throws {
    let median = try #require(Distribution(Array(1...100)).entry(.p50))
    // Of 100 values the 40th and the 61st have the median between them in 95 % of cases (Hahn, Meeker, table A.15).
    #expect(median.low == 40 && median.value == 50 && median.high == 61)
  }

  @Test func anIntervalMayEndAmongTheTimeouts() throws {
    let median = try #require(Distribution(Array(1...55), timeouts: 45).entry(.p50))
    #expect(median.low == 40 && median.value == 50 && median.high == nil)
  }

  @Test func ofNothingThereIsNothing() {
    let found = Distribution([])
    #expect(found.count == 0 && found.percentiles.isEmpty)
    #expect(found.minimum == nil && found.maximum == nil && found.mean == nil && found.deviation == nil)
  }

  @Test func timeoutsAreTheLargestValues() {
    let found = Distribution(Array(1...30), timeouts: 10)
    #expect(found.value(.p50) == 20)
    #expect(found.percentiles.map(\.percentile) == [.p50, .p90])
    #expect(found.value(.p90) == nil)
    #expect(found.maximum == 30)
    #expect(Distribution([1, 2], timeouts: 6).value(.p50) == nil)
  }
}
