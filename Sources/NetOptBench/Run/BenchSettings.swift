package import NetOptCore

/// The settings of a run.
package struct BenchSettings: Sendable {
  /// The request, with its time and size limits.
  package var request: NetOptRequest
  /// The targets to measure.
  package var targets: [BenchTarget]
  /// The blocks of the run, in the order in which it performs them.
  package var blocks: [Block] = [.cold, .warm]
  /// The number of rounds, or the duration of the run.
  package var length = BenchLength.standard
  /// The number of warm-up rounds before the warm block. The report does not contain their samples.
  package var warmup = 2
  /// The seed for the order of the targets within the rounds.
  package var seed: UInt64
  /// The number of requests per second of an open loop, over all targets together. An open loop starts each
  /// request on schedule, whether or not earlier requests have ended. `nil` for a closed loop, which starts a
  /// request when the request before it has ended.
  package var rate: Double?
  /// The number of connections to each target. Each has its own client.
  package var concurrency = 1
  /// The number of concurrent requests on each connection in a closed loop.
  package var streams = 1
  /// The significance level: the probability that a test calls a difference significant when there is none.
  /// Intervals have the confidence 1 - `alpha`.
  package var alpha = 0.05
  /// The minimum effect. A difference is significant only if it exceeds this share of the p50 of the target
  /// that it is measured against.
  package var minimumEffect = 0.01
  /// The name of the target with which all others are compared; `nil` for the DNS target.
  package var reference: String?
  /// The objectives that each target should meet.
  package var objectives: [Objective] = []

  /// Makes settings with the defaults.
  package init(_ request: NetOptRequest, targets: [BenchTarget], seed: UInt64) {
    self.request = request
    self.targets = targets
    self.seed = seed
  }

  /// Computes percentiles and their intervals with the confidence 1 - `alpha`.
  var order: OrderStatistics { OrderStatistics(confidence: 1 - alpha) }
}
