import NetOptCore

/// Decides when a block ends.
struct BlockPace {
  private let block: Block
  private let planned: Int?
  private let share: Duration?
  private let start: MonotonicInstant

  /// Makes the pace of a block that begins at `start`.
  init(_ settings: BenchSettings, _ block: Block, start: MonotonicInstant) {
    self.block = block
    self.start = start
    planned = settings.length.rounds(of: block)
    if case .duration(let duration) = settings.length {
      share = duration / settings.blocks.count
    } else {
      share = nil
    }
  }

  /// Whether the block begins another round. The first round always begins, however short the duration: a run
  /// without a sample is useless.
  func continues(after done: Int, at now: MonotonicInstant) -> Bool {
    if let planned { return done < planned }
    return share.map { done == 0 || now - start < $0 } ?? false
  }

  /// The progress of the block. The remaining time is extrapolated from the completed rounds, or follows from
  /// the block's duration.
  func progress(
    after done: Int, at now: MonotonicInstant, medians: [BenchProgress.Median] = []
  ) -> BenchProgress {
    let elapsed = now - start
    let remaining =
      planned.map { elapsed / max(done, 1) * ($0 - done) } ?? share.map { max(.zero, $0 - elapsed) }
    return BenchProgress(block, done: done, planned: planned, remaining: remaining, medians: medians)
  }
}
