import NetOptCore

/// A part of a run that uses connections in one way.
package enum Block: String, CaseIterable, Sendable {
  /// Each request opens a new connection, without a resumed TLS session and without a cached DNS answer.
  case cold
  /// The requests reuse open connections.
  case warm
}

/// The length of a run.
package enum BenchLength: Hashable, Sendable {
  /// The number of rounds in each block.
  case rounds(cold: Int, warm: Int)
  /// The time in which rounds may begin. All blocks get equal parts of it.
  case duration(Duration)

  /// The default: 10 cold and 80 warm rounds. 80 warm rounds suffice for the 72 samples that p95 needs, with
  /// some failures among the rounds. 10 cold rounds suffice for the 6 samples that p50 needs.
  package static let standard = BenchLength.rounds(cold: 10, warm: 80)

  /// The number of rounds of a block, or `nil` when a duration limits the run.
  package func rounds(of block: Block) -> Int? {
    switch self {
    case .rounds(let cold, let warm): block == .cold ? cold : warm
    case .duration: nil
    }
  }
}

/// The order of the targets in each round of a block. Every round contains each target once; the seed
/// determines the order.
///
/// The plan interleaves the targets because the network drifts. A run that measured the targets one after the
/// other would report a "difference" for an unchanged server most of the time.
package struct BenchPlan: Sequence, IteratorProtocol, Sendable {
  private var generator: SplitMix64
  private let targets: Int

  /// Makes the plan of a block for `targets` targets. The sequence has no end.
  package init(seed: UInt64, block: Block, targets: Int) {
    // The blocks start far apart in the generator's sequence, so that adding a block does not change the
    // order in another block.
    var start = SplitMix64(seed: seed)
    let cold = start.next()
    let warm = start.next()
    generator = SplitMix64(seed: block == .cold ? cold : warm)
    self.targets = targets
  }

  /// The indices of all targets in the order of the next round (Fisher–Yates shuffle).
  package mutating func next() -> [Int]? {
    var order = Array(0..<targets)
    for last in stride(from: targets - 1, to: 0, by: -1) {
      order.swapAt(last, Int(generator.below(UInt64(last) + 1)))
    }
    return order
  }
}
