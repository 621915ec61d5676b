import NetOptCore

/// How far a run has come.
package struct BenchProgress: Hashable, Sendable {
  /// The block that is under way.
  package let block: Block
  /// How many of its rounds are over.
  package let done: Int
  /// How many it has, or `nil` when time decides.
  package let planned: Int?
  /// How long the block will go on, as far as that is known.
  package let remaining: Duration?

  /// Makes a state.
  package init(_ block: Block, done: Int, planned: Int?, remaining: Duration?) {
    self.block = block
    self.done = done
    self.planned = planned
    self.remaining = remaining
  }

  /// The state in a few words: `warm 34/80 rounds, 12 s left`.
  package var text: String {
    let rounds = planned.map { "\(done)/\($0)" } ?? "\(done)"
    let left = remaining.map { ", \(($0.nanoseconds + 999_999_999) / 1_000_000_000) s left" }
    return "\(block.rawValue) \(rounds) rounds\(left ?? "")"
  }
}
