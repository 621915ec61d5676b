extension BenchReport.TargetResult {
  /// Stores the results of a block, and adds the block's samples to `counts`.
  mutating func add(_ series: SampleSeries, of block: Block, order: OrderStatistics) {
    blocks[block] = BenchReport.BlockResult(series, order: order)
    counts.merge(series.counts, uniquingKeysWith: +)
  }
}
