extension BenchReport.TargetResult {
  /// Summarises the samples of a block, stores the result in `blocks`, and adds the kinds of the samples to
  /// `counts`.
  mutating func add(_ series: SampleSeries, of block: Block, order: OrderStatistics) {
    blocks[block] = BenchReport.BlockResult(series, order: order)
    counts.merge(series.counts, uniquingKeysWith: +)
  }
}
