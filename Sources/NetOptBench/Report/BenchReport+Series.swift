extension BenchReport.TargetResult {
  /// Adds the samples of a block.
  mutating func add(_ series: SampleSeries, of block: Block, order: OrderStatistics) {
    blocks[block] = BenchReport.BlockResult(series, order: order)
    counts.merge(series.counts, uniquingKeysWith: +)
  }
}
