import NetOptCore

/// What is asked of every target: `p95<200ms`, `errors<1%`.
package struct Objective: Hashable, Sendable {
  /// What is looked at.
  package enum Metric: Hashable, Sendable {
    /// A percentile of the response times.
    case percentile(Percentile)
    /// Their mean.
    case mean
    /// The longest of them.
    case maximum
    /// The share of requests that failed, in millionths.
    case errors
  }

  /// What is looked at.
  package let metric: Metric
  /// What it has to stay under: microseconds, or millionths of requests.
  package let limit: Int64
  /// Whether it may reach the limit.
  package let includesLimit: Bool
  /// As it was written.
  package let text: String

  /// How a target does.
  package struct Verdict: Hashable, Sendable {
    /// What was asked.
    package let objective: Objective
    /// The target.
    package let target: String
    /// The block whose requests are meant; `nil` for all of them.
    package let block: Block?
    /// What it reached, in the unit of the limit; `nil` when there are too few samples, or the value lies among timeouts.
    package let value: Int64?
    /// Whether the target keeps to it.
    package let isMet: Bool
    /// Why there is no value.
    package let reason: String?
  }

  /// Why a text is no list of objectives: what is wrong, and what would be right.
  package struct Fault: Error, Hashable, Sendable, CustomStringConvertible {
    /// What is wrong.
    package let description: String
  }

  /// Reads objectives with commas between them.
  package static func list(_ text: String) throws(Fault) -> [Objective] {
    var objectives: [Objective] = []
    for part in text.split(separator: ",", omittingEmptySubsequences: false) {
      objectives.append(try Objective(String(part.filter { $0 != " " })))
    }
    return objectives
  }

  private init(_ text: String) throws(Fault) {
    let fault = Fault(
      description: "\"\(text)\" is no objective; write one as p95<200ms, mean<=50ms, max<1s or errors<1%")
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
    limit = Int64((number * unit).rounded())
    self.text = text
  }

  /// How every target does that was measured. Times are those of the warm block when it was asked for, failures those of all blocks.
  /// A target of which there is no value has not shown that it keeps to the objective.
  static func verdicts(_ report: BenchReport) -> [Verdict] {
    // Not the block of the ranking: that one is another when the warm block has no median, which is no reason to look away.
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

  /// The share of a target's requests that failed, in millionths.
  private static func share(of result: BenchReport.TargetResult) -> (Int64?, String?) {
    let requests = result.counts.values.reduce(0, +)
    guard requests > 0 else { return (nil, "there were no requests") }
    return (Int64((Double(result.failures) / Double(requests) * 1e6).rounded()), nil)
  }

  private func value(of found: BenchReport.BlockResult, _ order: OrderStatistics) -> (Int64?, String?) {
    switch metric {
    case .percentile(let percentile):
      guard let entry = found.response.entry(percentile) else {
        return (nil, "\(percentile.name) needs \(order.needed(for: percentile)) samples")
      }
      return (entry.value, entry.value == nil ? "it lies among the timeouts" : nil)
    case .mean where found.response.timeouts == 0:
      return (
        found.response.mean.map { Int64($0.rounded()) },
        found.response.count == 0 ? "no request was fine" : nil
      )
    case .maximum where found.response.timeouts == 0:
      return (found.response.maximum, found.response.count == 0 ? "no request was fine" : nil)
    case .mean, .maximum, .errors: return (nil, "there are timeouts")
    }
  }
}
