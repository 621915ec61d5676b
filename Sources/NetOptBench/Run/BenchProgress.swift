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

  /// The median of what each target's requests took so far, in microseconds.
  package let medians: [Median]

  /// A target's running median.
  package struct Median: Hashable, Sendable {
    /// The target's name.
    package let id: String
    /// The median in microseconds.
    package let microseconds: Int64

    /// Makes a median.
    package init(id: String, microseconds: Int64) {
      self.id = id
      self.microseconds = microseconds
    }
  }

  /// Makes a state.
  package init(
    _ block: Block, done: Int, planned: Int?, remaining: Duration?, medians: [Median] = []
  ) {
    self.block = block
    self.done = done
    self.planned = planned
    self.remaining = remaining
    self.medians = medians
  }

  /// The state in a few words: `warm 34/80 rounds, 12 s left; p50 ms: 203.0.113.7 24.1, dns 29.5`. The fastest three are
  /// named, which fit on a line.
  ///
  /// - Parameter columns: the width of the line, of which the last place stays free: a line that the terminal breaks cannot be
  ///   erased.
  package func text(columns: Int = TextLayout.width) -> String {
    let rounds = planned.map { "\(done)/\($0)" } ?? "\(done)"
    let left = remaining.map { ", \($0.nanoseconds.addingClamped(999_999_999) / 1_000_000_000) s left" }
    let fastest = medians.sorted { ($0.microseconds, $0.id) < ($1.microseconds, $1.id) }.prefix(3)
    let time = Milliseconds(smallest: fastest.first?.microseconds)
    let running = fastest.map { "\($0.id) \(time.text($0.microseconds))" }.joined(separator: ", ")
    let text =
      "\(block.rawValue) \(rounds) rounds\(left ?? "")" + (running.isEmpty ? "" : "; p50 ms: \(running)")
    return TextLayout.cut(text, to: columns - 1)
  }
}
