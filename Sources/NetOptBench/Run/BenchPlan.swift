import NetOptCore

/// A part of a run in which connections are used in one way.
package enum Block: String, CaseIterable, Sendable {
  /// Each request on a new connection, without a resumed TLS session or a cached DNS answer.
  case cold
  /// Requests on connections that are kept.
  case warm
}

/// How much is measured.
package enum BenchLength: Hashable, Sendable {
  /// So many rounds in each block.
  case rounds(cold: Int, warm: Int)
  /// As many rounds as begin within this time, of which every block gets an equal part.
  case duration(Duration)

  /// The rounds of a block when nothing else is asked for. 80 warm ones are enough for the 72 samples that p95 needs
  /// with some failures among them; 10 cold ones for the 6 of p50.
  package static let standard = BenchLength.rounds(cold: 10, warm: 80)

  /// The number of rounds of a block, or `nil` when time decides.
  package func rounds(of block: Block) -> Int? {
    switch self {
    case .rounds(let cold, let warm): block == .cold ? cold : warm
    case .duration: nil
    }
  }
}

/// The order of the targets in each round of a block: every target once, in an order that the seed decides.
///
/// Interleaving is what makes targets comparable: measured one after the other, a server that has not changed
/// "differs" in most runs, because the network drifts.
package struct BenchPlan: Sequence, IteratorProtocol, Sendable {
  private var generator: SplitMix64
  private let targets: Int

  /// Makes the plan of a block for so many targets. The sequence has no end.
  package init(seed: UInt64, block: Block, targets: Int) {
    // The blocks start far apart in the generator's sequence, so that adding a block changes no other.
    var start = SplitMix64(seed: seed)
    let cold = start.next()
    let warm = start.next()
    generator = SplitMix64(seed: block == .cold ? cold : warm)
    self.targets = targets
  }

  /// The positions of all targets in the order of the next round (Fisher–Yates).
  package mutating func next() -> [Int]? {
    var order = Array(0..<targets)
    for last in stride(from: targets - 1, to: 0, by: -1) {
      order.swapAt(last, Int(generator.below(UInt64(last) + 1)))
    }
    return order
  }
}
