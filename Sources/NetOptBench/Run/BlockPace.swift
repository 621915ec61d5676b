import NetOptCore

/// How long a block goes on.
struct BlockPace {
  private let block: Block
  private let planned: Int?
  private let share: Duration?
  private let start: MonotonicInstant

  /// Makes the pace of a block that starts now.
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

  /// Whether another round begins. The first one does however short the time is: a run without a sample says nothing.
  func goesOn(after done: Int, at now: MonotonicInstant) -> Bool {
    if let planned { return done < planned }
    return share.map { done == 0 || now - start < $0 } ?? false
  }

  /// How far the block has come. The time that is left follows from the rounds so far.
  func progress(
    after done: Int, at now: MonotonicInstant, medians: [BenchProgress.Median] = []
  ) -> BenchProgress {
    let elapsed = now - start
    let remaining =
      planned.map { elapsed / max(done, 1) * ($0 - done) } ?? share.map { max(.zero, $0 - elapsed) }
    return BenchProgress(block, done: done, planned: planned, remaining: remaining, medians: medians)
  }
}
