package import NetOptCore

/// What a run measures, and how.
package struct BenchSettings: Sendable {
  /// What is sent, with its limits.
  package var request: HTTPRequest
  /// What is measured.
  package var targets: [BenchTarget]
  /// The blocks, in the order in which they are run.
  package var blocks: [Block] = [.cold, .warm]
  /// How much is measured.
  package var length = BenchLength.standard
  /// The rounds before the warm block that do not count.
  package var warmup = 2
  /// What decides the order within the rounds.
  package var seed: UInt64

  /// Makes settings with the defaults.
  package init(_ request: HTTPRequest, targets: [BenchTarget], seed: UInt64) {
    self.request = request
    self.targets = targets
    self.seed = seed
  }
}
