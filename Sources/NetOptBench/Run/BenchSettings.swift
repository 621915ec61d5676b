package import NetOptCore

/// What a run measures, and how.
package struct BenchSettings: Sendable {
  /// What is sent, with its limits.
  package var request: NetOptRequest
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
  /// How many requests begin in a second, whatever became of those before (open loop), or `nil` for one when the one before has
  /// ended (closed loop).
  package var rate: Double?
  /// How many connections to each target there are.
  package var concurrency = 1
  /// How many requests are under way on each connection in a closed loop.
  package var streams = 1
  /// How often a difference may be called significant that is none.
  package var alpha = 0.05
  /// The smallest shift that is called significant, as a share of the reference's median.
  package var minimumEffect = 0.01
  /// The target that others are compared with; DNS when it is `nil`.
  package var reference: String?
  /// What is asked of the targets.
  package var objectives: [Objective] = []

  /// Makes settings with the defaults.
  package init(_ request: NetOptRequest, targets: [BenchTarget], seed: UInt64) {
    self.request = request
    self.targets = targets
    self.seed = seed
  }

  /// The statistics of percentiles with the confidence that belongs to `alpha`.
  var order: OrderStatistics { OrderStatistics(confidence: 1 - alpha) }
}
