extension BenchReport.TargetResult {
  /// Adds what was measured in a block.
  mutating func add(_ series: SampleSeries, of block: Block, order: OrderStatistics) {
    blocks[block] = BenchReport.BlockResult(series, order: order)
    counts.merge(series.counts, uniquingKeysWith: +)
  }
}
