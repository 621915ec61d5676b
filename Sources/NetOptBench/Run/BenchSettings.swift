package import NetOptCore

/// The settings of a run.
package struct BenchSettings: Sendable {
  /// The request, with its time and size limits.
  package var request: NetOptRequest
  /// The targets to measure.
  package var targets: [BenchTarget]
  /// The blocks, in execution order.
  package var blocks: [Block] = [.cold, .warm]
  /// The length of the run.
  package var length = BenchLength.standard
  /// The number of warm-up rounds before the warm block. The report ignores them.
  package var warmup = 2
  /// The seed for the order of the targets within the rounds.
  package var seed: UInt64
  /// The request rate per second of an open loop, which starts each request on schedule, whether or not
  /// earlier requests have ended. `nil` for a closed loop, which starts a request when the previous request
  /// has ended.
  package var rate: Double?
  /// The number of connections to each target.
  package var concurrency = 1
  /// The number of concurrent requests on each connection in a closed loop.
  package var streams = 1
  /// The significance level: the probability of calling a difference significant when there is none.
  package var alpha = 0.05
  /// The smallest shift that counts as significant, as a share of the reference's median.
  package var minimumEffect = 0.01
  /// The name of the target that all others are compared with, or `nil` for DNS.
  package var reference: String?
  /// The objectives for every target.
  package var objectives: [Objective] = []

  /// Makes settings with the defaults.
  package init(_ request: NetOptRequest, targets: [BenchTarget], seed: UInt64) {
    self.request = request
    self.targets = targets
    self.seed = seed
  }

  /// The order statistics of percentiles with confidence 1 - `alpha`.
  var order: OrderStatistics { OrderStatistics(confidence: 1 - alpha) }
}
