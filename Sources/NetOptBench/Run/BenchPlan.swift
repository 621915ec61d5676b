import NetOptCore

/// A part of a run in which all requests use connections in the same way.
package enum Block: String, CaseIterable, Sendable {
  /// Each request opens a new connection. It resumes no TLS session and uses no cached DNS answer.
  case cold
  /// The requests reuse open connections.
  case warm
}

/// The length of a run.
package enum BenchLength: Hashable, Sendable {
  /// The number of rounds in each block. Warm-up rounds are not included.
  case rounds(cold: Int, warm: Int)
  /// The time in which rounds may begin. Each block gets an equal part of it. Rounds that have begun may end
  /// later.
  case duration(Duration)

  /// The default: 10 cold and 80 warm rounds. p50 needs 6 samples, and p95 needs 72. The remaining rounds
  /// allow for some failures.
  package static let standard = BenchLength.rounds(cold: 10, warm: 80)

  /// The number of rounds of a block, or `nil` when a duration limits the run.
  package func rounds(of block: Block) -> Int? {
    switch self {
    case .rounds(let cold, let warm): block == .cold ? cold : warm
    case .duration: nil
    }
  }
}

/// The order of the targets in each round of a block. Every round contains each target once, in a random
/// order that the seed determines.
///
/// Measuring one target after the other would be wrong, because the network drifts: each target would meet
/// the network in another state. More than half of such runs would report a difference between two targets
/// that are equally fast (docs/bench.md).
package struct BenchPlan: Sequence, IteratorProtocol, Sendable {
  private var generator: SplitMix64
  /// The number of targets.
  private let targets: Int

  /// Makes the plan of a block. The sequence has no end.
  ///
  /// - Parameters:
  ///   - seed: the seed of the run (`BenchSettings.seed`).
  ///   - targets: the number of targets.
  package init(seed: UInt64, block: Block, targets: Int) {
    // Each block has a seed of its own, so that the order in one block does not depend on the other block.
    var start = SplitMix64(seed: seed)
    let cold = start.next()
    let warm = start.next()
    generator = SplitMix64(seed: block == .cold ? cold : warm)
    self.targets = targets
  }

  /// The indices of all targets in the order of the next round (Fisher–Yates shuffle); never `nil`.
  package mutating func next() -> [Int]? {
    var order = Array(0..<targets)
    for last in stride(from: targets - 1, to: 0, by: -1) {
      order.swapAt(last, Int(generator.below(UInt64(last) + 1)))
    }
    return order
  }
}
