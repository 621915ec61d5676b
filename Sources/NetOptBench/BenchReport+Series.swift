extension BenchReport.TargetResult {
  /// Adds what was measured in a block.
  mutating func add(_ series: SampleSeries, of block: Block) {
    blocks[block] = BenchReport.BlockResult(series)
    counts.merge(series.counts, uniquingKeysWith: +)
  }
}

extension BenchReport {
  /// Says where connections were not used in the way that a block is about: its numbers are then of something else.
  var connectionWarnings: [BenchWarning] {
    settings.blocks.flatMap { block in
      targets.compactMap { result -> BenchWarning? in
        guard let found = result.blocks[block] else { return nil }
        let id = result.target.id
        switch block {
        case .warm where found.reused < found.response.count:
          return BenchWarning(
            "not-reused",
            "\(found.response.count - found.reused) of \(found.response.count) warm samples of \(id) opened a "
              + "new connection")
        case .cold where found.reused > 0:
          return BenchWarning(
            "reused",
            "\(found.reused) of \(found.response.count) cold samples of \(id) used an open connection")
        default: return nil
        }
      }
    }
  }
}
