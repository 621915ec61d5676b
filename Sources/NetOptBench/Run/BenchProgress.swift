import NetOptCore

/// The progress of a run.
package struct BenchProgress: Hashable, Sendable {
  /// The current block.
  package let block: Block
  /// The number of completed rounds in the current block.
  package let done: Int
  /// The number of rounds that the current block will have; `nil` when a duration limits the run.
  package let planned: Int?
  /// The estimated time until the end of the current block; `nil` when unknown.
  package let remaining: Duration?

  /// The median response time of each target in the current block so far.
  package let medians: [Median]

  /// The median response time of a target so far.
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

  /// Describes the progress of a block.
  package init(
    _ block: Block, done: Int, planned: Int?, remaining: Duration?, medians: [Median] = []
  ) {
    self.block = block
    self.done = done
    self.planned = planned
    self.remaining = remaining
    self.medians = medians
  }

  /// The progress as one line: `warm 34/80 rounds, 12 s left; p50 ms: 203.0.113.7 24.1, dns 29.5`. The line
  /// names only the three fastest targets, so that it fits.
  ///
  /// - Parameter columns: the width of the terminal in characters. The text leaves the last column free,
  ///   because a line that the terminal wraps cannot be erased.
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
