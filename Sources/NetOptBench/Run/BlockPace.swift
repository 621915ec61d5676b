import NetOptCore

/// Decides when a block ends: after a number of rounds, or after a part of the run's duration.
struct BlockPace {
  private let block: Block
  /// The number of rounds of the block; `nil` when a duration limits the run.
  private let planned: Int?
  /// The block's part of the run's duration; `nil` when a number of rounds limits the run.
  private let share: Duration?
  /// When the block began.
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

  /// Whether the block may begin another round. When a duration limits the run, the first round always may
  /// begin, however short the duration is, because a run without a sample is useless.
  ///
  /// - Parameter done: the number of rounds that have begun.
  func continues(after done: Int, at now: MonotonicInstant) -> Bool {
    if let planned { return done < planned }
    return share.map { done == 0 || now - start < $0 } ?? false
  }

  /// The progress of the block. With a number of rounds, the remaining time is an estimate from the time that
  /// the completed rounds took. With a duration, it is the rest of the duration.
  ///
  /// - Parameter done: the number of completed rounds.
  func progress(
    after done: Int, at now: MonotonicInstant, medians: [BenchProgress.Median] = []
  ) -> BenchProgress {
    let elapsed = now - start
    let remaining =
      planned.map { elapsed / max(done, 1) * ($0 - done) } ?? share.map { max(.zero, $0 - elapsed) }
    return BenchProgress(block, done: done, planned: planned, remaining: remaining, medians: medians)
  }
}
