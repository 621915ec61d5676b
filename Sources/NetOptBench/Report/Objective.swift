import NetOptCore

/// A limit that the user sets for every target, such as `p95<200ms` or `errors<1%`.
package struct Objective: Hashable, Sendable {
  /// The quantity that an objective limits.
  package enum Metric: Hashable, Sendable {
    /// A percentile of the response times.
    case percentile(Percentile)
    /// The mean of the response times.
    case mean
    /// The longest response time.
    case maximum
    /// The share of failed requests.
    case errors
  }

  /// The quantity that the objective limits.
  package let metric: Metric
  /// The limit: a time in microseconds, or for `errors` a share in millionths.
  package let limit: Int64
  /// Whether a value equal to the limit meets the objective.
  package let includesLimit: Bool
  /// The objective as the user wrote it.
  package let text: String

  /// Whether a target meets an objective, and the value that was measured.
  package struct Verdict: Hashable, Sendable {
    /// The objective.
    package let objective: Objective
    /// The target's name.
    package let target: String
    /// The block whose requests count; `nil` when the requests of all blocks count.
    package let block: Block?
    /// The measured value in the unit of the limit; `nil` when it is unknown (`reason` says why).
    package let value: Int64?
    /// Whether the target meets the objective. A target without a value does not meet it.
    package let isMet: Bool
    /// The reason why there is no value, such as too few samples or timeouts; `nil` when there is a value.
    package let reason: String?
  }

  /// The reason why a text is not a list of objectives.
  package struct Fault: Error, Hashable, Sendable, CustomStringConvertible {
    /// The invalid objective, and examples of valid ones.
    package let description: String
  }

  /// Parses a comma-separated list of objectives. Spaces are ignored.
  package static func list(_ text: String) throws(Fault) -> [Objective] {
    var objectives: [Objective] = []
    for part in text.split(separator: ",", omittingEmptySubsequences: false) {
      objectives.append(try Objective(String(part.filter { $0 != " " })))
    }
    return objectives
  }

  /// Parses one objective without spaces.
  private init(_ text: String) throws(Fault) {
    let fault = Fault(
      description:
        "\"\(text)\" is not an objective; write for example p95<200ms, mean<=50ms, max<1s or errors<1%")
    guard let sign = text.firstIndex(of: "<") else { throw fault }
    var rest = text[text.index(after: sign)...]
    includesLimit = rest.first == "="
    if includesLimit { rest = rest.dropFirst() }
    let metrics: [String: Metric] = [
      "p50": .percentile(.p50), "p90": .percentile(.p90), "p95": .percentile(.p95), "p99": .percentile(.p99),
      "p99.9": .percentile(.p999), "mean": .mean, "max": .maximum, "errors": .errors,
    ]
    guard let metric = metrics[text[..<sign].lowercased()] else { throw fault }
    let digits = rest.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
    let units = metric == .errors ? ["%": 1e4] : ["us": 1, "ms": 1e3, "s": 1e6]
    guard let number = Double(digits), let unit = units[String(rest[digits.endIndex...])],
      (0...1e12).contains(number * unit)
    else { throw fault }
    self.metric = metric
    limit = Int64(clamped: (number * unit).rounded())
    self.text = text
  }

  /// The result of each measured target for each objective. Times come from the warm block when the run has
  /// one, otherwise from the cold block. Failures come from all blocks. A target without a value does not
  /// meet the objective.
  static func verdicts(_ report: BenchReport) -> [Verdict] {
    // `rankingBlock` switches to the cold block when the warm block has no p50. An objective must not do
    // that: it would then compare its limit with times of another kind.
    let timed = report.settings.blocks.contains(.warm) ? Block.warm : .cold
    return report.settings.objectives.flatMap { objective in
      report.targets.filter { $0.exclusion == nil }.map { result in
        let block = objective.metric == .errors ? nil : timed
        let (value, reason) =
          block.map { block in
            result.blocks[block].map { objective.value(of: $0, report.settings.order) }
              ?? (nil, "it was not measured")
          } ?? share(of: result)
        let isMet =
          value.map { objective.includesLimit ? $0 <= objective.limit : $0 < objective.limit } ?? false
        return Verdict(
          objective: objective, target: result.target.id, block: block, value: value, isMet: isMet,
          reason: reason)
      }
    }
  }

  /// The share of failed requests of a target in millionths, or the reason why there is no share.
  private static func share(of result: BenchReport.TargetResult) -> (Int64?, String?) {
    let requests = result.counts.values.reduce(0, +)
    guard requests > 0 else { return (nil, "there were no requests") }
    return (Int64(clamped: (Double(result.failures) / Double(requests) * 1e6).rounded()), nil)
  }

  /// The time that the objective limits, in microseconds, or the reason why it is unknown. Not for `errors`.
  ///
  /// - Parameters:
  ///   - found: the results of a target in the block whose times count.
  ///   - order: decides how many samples a percentile needs.
  private func value(of found: BenchReport.BlockResult, _ order: OrderStatistics) -> (Int64?, String?) {
    switch metric {
    case .percentile(let percentile):
      guard let entry = found.response.entry(percentile) else {
        return (nil, "\(percentile.name) needs \(order.needed(for: percentile)) samples")
      }
      return (entry.value, entry.value == nil ? "it falls among the timeouts" : nil)
    case .mean where found.response.timeouts == 0:
      return (
        found.response.mean.map { Int64(clamped: $0.rounded()) },
        found.response.count == 0 ? "no request succeeded" : nil
      )
    case .maximum where found.response.timeouts == 0:
      return (found.response.maximum, found.response.count == 0 ? "no request succeeded" : nil)
    case .mean, .maximum, .errors: return (nil, "there are timeouts")
    }
  }
}
