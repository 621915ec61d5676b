import NetOptBench
import Testing

@Suite struct DistributionTests {
  @Test("a distribution has the count, extremes, mean, median and deviation of its values")
  func summary() {
    let found = Distribution([9, 1, 4, 4, 2, 100])
    #expect(found.count == 6)
    #expect(found.minimum == 1)
    #expect(found.maximum == 100)
    #expect(found.mean == 20)
    #expect(found.value(.p50) == 4)
    // The distances from 4, sorted: 0 0 2 3 5 96.
    #expect(found.medianDeviation == 2)
  }

  @Test(
    "a distribution has a percentile only with enough values",
    arguments: [
      (5, []), (6, [.p50]), (35, [.p50]), (36, [.p50, .p90]), (72, [.p50, .p90, .p95]),
      (368, [.p50, .p90, .p95, .p99]), (3688, Percentile.reported),
    ])
  func neededValues(count: Int, percentiles: [Percentile]) {
    let found = Distribution(Array(1...Int64(count)))
    #expect(found.percentiles.map(\.percentile) == percentiles)
  }

  @Test("the interval of a median ends at measured values")
  func interval() throws {
    let median = try #require(Distribution(Array(1...100)).entry(.p50))
    // The median lies between the 40th and the 61st of 100 values in 95 % of cases (Hahn, Meeker,
    // table A.15).
    #expect(median.low == 40 && median.value == 50 && median.high == 61)
  }

  @Test("an interval that ends among the timeouts has no upper end")
  func openInterval() throws {
    let median = try #require(Distribution(Array(1...55), timeouts: 45).entry(.p50))
    #expect(median.low == 40 && median.value == 50 && median.high == nil)
  }

  @Test("a distribution without values has no statistics")
  func noValues() {
    let found = Distribution([])
    #expect(found.count == 0 && found.percentiles.isEmpty)
    #expect(found.minimum == nil && found.maximum == nil && found.mean == nil && found.medianDeviation == nil)
  }

  @Test("timeouts count as the largest values, and the maximum ignores them")
  func largestValues() {
    let found = Distribution(Array(1...30), timeouts: 10)
    #expect(found.value(.p50) == 20)
    #expect(found.percentiles.map(\.percentile) == [.p50, .p90])
    #expect(found.value(.p90) == nil)
    #expect(found.maximum == 30)
    #expect(Distribution([1, 2], timeouts: 6).value(.p50) == nil)
  }
}
