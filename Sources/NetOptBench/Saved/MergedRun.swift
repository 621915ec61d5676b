package import NetOptCore

/// The sum of several saved runs, target by target: for example of the runs of several machines. The
/// percentiles come from the summed histograms, so they are exact to three digits. The sum has no ranks and
/// no comparisons, because the runs have no rounds in common.
package struct MergedRun: Sendable {
  /// The sum as a saved run.
  package private(set) var run: SavedRun
  /// The index of each target in `run.targets`, by the target's name.
  private var targetIndices: [String: Int] = [:]

  /// Starts the sum with one run.
  package init(_ first: SavedRun) {
    run = SavedRun(
      runs: first.runs, url: first.url, isPartial: first.isPartial, targets: [], comparisons: [])
    first.targets.forEach { add($0) }
  }

  /// Adds a run. The sum keeps no reference to `other`, so that the memory of `other` can be freed before the
  /// next run is read.
  ///
  /// - Throws: `SavedRun.Fault` when the sum exceeds the size limits of a saved run. The sum is then not
  ///   usable any more.
  package mutating func add(_ other: SavedRun) throws(SavedRun.Fault) {
    run.runs += other.runs
    run.isPartial = run.isPartial || other.isPartial
    other.targets.forEach { add($0) }
    guard run.targets.count <= SavedRun.maximumTargets else {
      throw SavedRun.Fault(
        description: "with this run, the sum has more than \(SavedRun.maximumTargets) targets")
    }
    guard run.targets.reduce(0, { $0 + $1.counters }) <= SavedRun.maximumCounters else {
      throw SavedRun.Fault(
        description:
          "with this run, the histograms of the sum have more than \(SavedRun.maximumCounters) counters")
    }
  }

  /// Adds the results of a target to the target of the same name, or adds the target.
  private mutating func add(_ target: SavedRun.Target) {
    if let index = targetIndices[target.id] { return run.targets[index].add(target) }
    targetIndices[target.id] = run.targets.count
    var target = target
    target.rank = nil
    for block in target.blocks.keys { target.blocks[block]?.forgetMedians() }
    run.targets.append(target)
  }

  /// The sum as JSON: `docs/schemas/merge.schema.json`. `netopt compare` and `netopt merge` can read it.
  package var json: JSONValue {
    [
      "schema_version": 1, "tool": "netopt merge", "runs": .array(run.runs.map(JSONValue.string)),
      "partial": .bool(run.isPartial), "request": ["url": .string(run.url)],
      "targets": .array(
        run.targets.map { target in
          var value: JSONValue = ["id": .string(target.id), "kind": .string(target.kind.rawValue)]
          if let exclusion = target.exclusion {
            value.append("excluded", ["code": .string(exclusion.code), "reason": .string(exclusion.reason)])
          }
          value.append(
            "counts",
            .object(SampleKind.allCases.map { .init($0.rawValue, .integer(Int64(target.counts[$0] ?? 0))) }))
          for block in Block.allCases {
            value.append(block.rawValue, target.blocks[block].map(Self.block) ?? .null)
          }
          return value
        }),
    ]
  }

  /// The member `cold` or `warm` of a target in the JSON.
  private static func block(_ times: SavedRun.BlockTimes) -> JSONValue {
    [
      "n": .integer(Int64(times.requests)),
      "dependence": times.dependence.map { .number(($0 * 1000).rounded() / 1000) } ?? .null,
      "response_us": distribution(times.response),
      "service_us": distribution(times.service),
      "phases_us": .object(
        SamplePhase.allCases.compactMap { phase in
          times.phases[phase].map { .init(phase.rawValue, distribution($0)) }
        }),
    ]
  }

  /// A member such as `response_us` of a block in the JSON. Times are in microseconds.
  private static func distribution(_ times: SavedRun.Times) -> JSONValue {
    [
      "n": .integer(Int64(clamping: times.histogram.total)), "timeouts": .integer(Int64(times.timeouts)),
      "percentiles": .array(
        times.entries().map { percentile, value, low, high in
          [
            "p": percentile.perMille % 10 == 0
              ? .integer(Int64(percentile.perMille / 10)) : .number(Double(percentile.perMille) / 10),
            "value": .optional(value), "lo": .optional(low), "hi": .optional(high),
          ]
        }),
      "hdr": .string(times.histogram.encoded),
    ]
  }

  /// The sum as text.
  package var text: String {
    var lines = [
      TextLayout.cut(
        "netopt merge  \(TextLayout.printable(run.runs.joined(separator: "+")))", to: TextLayout.width)
    ]
    let width = min(24, max(13, run.targets.map(\.id.count).max() ?? 0))
    for block in [Block.warm, .cold] where run.targets.contains(where: { $0.blocks[block] != nil }) {
      let rows = run.targets.compactMap { target in target.blocks[block].map { (target, $0) } }
      let time = Milliseconds(
        smallest: rows.compactMap { $0.1.response.entries().first?.value }.min())
      lines += [
        "",
        TextLayout.left("TARGET", width) + TextLayout.right("OK", 14)
          + [Percentile.p50, .p95, .p99].map { TextLayout.right($0.name, 10) }.joined()
          + "   \(block.rawValue), ms",
      ]
      for (target, times) in rows {
        let entries = times.response.entries()
        let cells = [Percentile.p50, .p95, .p99].map { percentile in
          let entry = entries.first { $0.percentile == percentile }
          return TextLayout.right(entry.map { $0.value.map(time.text) ?? "timeout" } ?? "-", 10)
        }
        lines += TextLayout.row(
          TextLayout.printable(target.id), width,
          TextLayout.right("\(times.response.histogram.total)/\(times.requests)", 14) + cells.joined())
      }
    }
    return lines.map { $0 + "\n" }.joined()
  }
}

extension SavedRun.Times {
  /// Adds the times of another run. Forgets the measured median, which the sum does not have.
  fileprivate mutating func add(_ other: SavedRun.Times) {
    histogram.add(other.histogram)
    timeouts += other.timeouts
    median = nil
  }

  /// The percentiles that have enough requests, with 95 % confidence intervals, in microseconds. A value or
  /// an end of an interval is `nil` when it lies among the timeouts.
  fileprivate func entries() -> [(percentile: Percentile, value: Int64?, low: Int64?, high: Int64?)] {
    Percentile.reported.compactMap { percentile in
      guard let ranks = OrderStatistics().ranks(of: percentile, count: total) else { return nil }
      func value(_ rank: Int) -> Int64? { histogram.value(atRank: UInt64(rank)) }
      return (
        percentile, value(percentile.nearestRank(of: total)), value(ranks.lowerBound), value(ranks.upperBound)
      )
    }
  }
}

extension SavedRun.BlockTimes {
  /// The number of counters in all histograms of the block.
  var counters: Int {
    ([response, service] + phases.values).reduce(0) { $0 + $1.histogram.counters }
  }

  /// Adds the times of the same target and block in another run.
  fileprivate mutating func add(_ other: SavedRun.BlockTimes) {
    // The factor of the sum is the average of both factors, weighted by the number of requests: this gives
    // the variance of the mean over the requests of both.
    let (m, n) = (Double(response.total), Double(other.response.total))
    if let mine = dependence, let theirs = other.dependence, m + n > 0 {
      dependence = (mine * m + theirs * n) / (m + n)
    } else {
      dependence = m == 0 ? other.dependence : n == 0 ? dependence : nil
    }
    requests += other.requests
    response.add(other.response)
    service.add(other.service)
    for (phase, times) in other.phases {
      if phases[phase] == nil { phases[phase] = times } else { phases[phase]?.add(times) }
    }
  }

  /// Forgets the measured medians. The medians of a sum come from its histograms.
  fileprivate mutating func forgetMedians() {
    response.median = nil
    service.median = nil
    for phase in phases.keys { phases[phase]?.median = nil }
  }
}

extension SavedRun.Target {
  /// The number of counters in all histograms of the target.
  var counters: Int { blocks.values.reduce(0) { $0 + $1.counters } }

  /// Adds the results of the target in another run.
  fileprivate mutating func add(_ other: SavedRun.Target) {
    counts.merge(other.counts, uniquingKeysWith: +)
    // A target that at least one run measured is not excluded from the sum.
    if !other.blocks.isEmpty || !blocks.isEmpty { exclusion = nil }
    for (block, times) in other.blocks {
      if blocks[block] == nil {
        blocks[block] = times
        blocks[block]?.forgetMedians()
      } else {
        blocks[block]?.add(times)
      }
    }
  }
}
