import FoundationEssentials
package import NetOptCore

/// The report as JSON, described by `docs/schemas/bench.schema.json`. Members whose names end in `_us` are
/// times in microseconds.
package struct JSONReport {
  private let report: BenchReport

  /// Makes a renderer.
  package init(_ report: BenchReport) { self.report = report }

  /// The report as one JSON object.
  package var value: JSONValue {
    let context = report.context
    let settings = report.settings
    var whole: JSONValue = [
      "schema_version": 1,
      "tool": "netopt bench",
      "version": .string(context.version),
      "run_id": .string(context.runID),
      "started_at": .string(context.startedAt.formatted(.iso8601)),
      "elapsed_us": .microseconds(report.elapsed),
      "argv": .array(context.arguments.map(JSONValue.string)),
      "seed": .integer(Int64(clamping: settings.seed)),
      "partial": .bool(report.isPartial),
      "stop_reason": .string(report.stopReason.rawValue),
      "host": [
        "os": .string(context.host.os),
        "libcurl": .optional(context.host.libcurl),
        "tls": .optional(context.host.tls),
        "cares": .optional(context.host.cares),
      ],
      "request": [
        "method": .string(settings.request.method.rawValue),
        "url": .string(settings.request.url.shown),
        "http_version": .optional(report.version?.rawValue),
      ],
      "plan": plan,
      "rounds": perBlock { report.rounds[$0] ?? 0 },
      "client": [
        "late_starts": .integer(Int64(report.lateStarts)), "start_lag_us": distribution(report.lags),
        "cpu_us": .microseconds(report.cpuTime),
      ],
      "targets": .array(report.targets.map(target)),
      "comparisons": .array(report.comparisons.map(comparison)),
      "picker": report.picker.map(picker) ?? .null,
      "slo": .array(report.verdicts.map(verdict)),
      "warnings": .array(report.warnings.map { ["code": .string($0.code), "text": .string($0.text)] }),
      "samples_path": .optional(report.samplesPath),
    ]
    if let drills = report.drills { whole.append("drill", .array(drills.map(\.json))) }
    return whole
  }

  /// The `plan` member: the length, the load and the significance settings of the run.
  private var plan: JSONValue {
    var seconds = JSONValue.null
    if case .duration(let duration) = report.settings.length {
      seconds = .number(Double(duration.nanoseconds) / 1e9)
    }
    return [
      "rounds": perBlock(report.settings.length.rounds),
      "duration_s": seconds,
      "rate": report.settings.rate.map(JSONValue.number) ?? .null,
      "concurrency": .integer(Int64(report.settings.concurrency)),
      "streams": .integer(Int64(report.settings.streams)),
      "warmup": report.settings.blocks.contains(.warm) ? .integer(Int64(report.settings.warmup)) : 0,
      "alpha": .number(report.settings.alpha),
      "min_effect": .number(report.settings.minimumEffect),
    ]
  }

  /// An object with a number for each block. The number is `null` when the run does not contain the block, or
  /// when `number` returns `nil`.
  private func perBlock(_ number: (Block) -> Int?) -> JSONValue {
    func value(_ block: Block) -> JSONValue {
      .optional(report.settings.blocks.contains(block) ? number(block) : nil)
    }
    return ["cold": value(.cold), "warm": value(.warm)]
  }

  /// The element of `targets` for a target.
  private func target(_ result: BenchReport.TargetResult) -> JSONValue {
    let target = result.target
    var members: JSONValue = [
      "id": .string(target.id),
      "kind": .string(target.kind.rawValue),
      "ip": .optional(target.address?.description),
      "port": .integer(Int64(target.port)),
      "region": .optional(target.region),
      "dns_answers": .optional(target.kind == .dns ? report.dnsAnswers : nil),
    ]
    if let exclusion = result.exclusion {
      members.append("excluded", ["code": .string(exclusion.code), "reason": .string(exclusion.reason)])
    }
    members.append(
      "tls",
      result.tls.map {
        [
          "verified": .bool($0.verified), "version": .optional($0.version), "subject": .optional($0.subject),
          "not_after": .optional($0.notAfter.map { CivilTime(seconds: $0).rfc3339 }),
        ]
      } ?? .null)
    members.append(
      "counts",
      .object(SampleKind.allCases.map { .init($0.rawValue, .integer(Int64(result.counts[$0] ?? 0))) }))
    members.append("rank", .optional(report.ranks.first { $0.target.target == target }?.rank))
    members.append("cold", result.blocks[.cold].map(block) ?? .null)
    members.append("warm", result.blocks[.warm].map(block) ?? .null)
    return members
  }

  /// The member `cold` or `warm` of a target: the results of the target in this block.
  private func block(_ found: BenchReport.BlockResult) -> JSONValue {
    let failed = found.requests - found.response.count
    let sockets = found.series.sockets
    return [
      "n": .integer(Int64(found.requests)),
      "reused": .integer(Int64(found.reused)),
      "dependence": .number((found.dependence.factor * 1000).rounded() / 1000),
      "failed": [
        "n": .integer(Int64(failed)),
        "share": found.requests == 0 ? .null : .number(Double(failed) / Double(found.requests)),
        "lo": .number(found.failureInterval.lowerBound), "hi": .number(found.failureInterval.upperBound),
      ],
      "response_us": withTimeouts(found.response),
      "service_us": withTimeouts(found.service),
      "phases_us": .object(
        SamplePhase.allCases.map { phase in
          .init(phase.rawValue, distribution(found.phases[phase] ?? Distribution([])))
        }),
      "tcp_info": sockets.roundTrips.isEmpty
        ? .null
        : [
          "rtt_us": distribution(Distribution(sockets.roundTrips, order: report.settings.order)),
          "retransmits": .integer(sockets.retransmits),
        ],
    ]
  }

  /// A distribution with the number of timeouts.
  private func withTimeouts(_ found: Distribution) -> JSONValue {
    var value = distribution(found)
    value.append("timeouts", .integer(Int64(found.timeouts)))
    return value
  }

  /// A distribution without the number of timeouts.
  private func distribution(_ found: Distribution) -> JSONValue {
    [
      "n": .integer(Int64(found.count)),
      "min": .optional(found.minimum),
      "max": .optional(found.maximum),
      // The mean has one decimal: the clock is less precise than 0.1 µs.
      "mean": found.mean.map { .number(($0 * 10).rounded() / 10) } ?? .null,
      "mad": .optional(found.medianDeviation),
      "percentiles": .array(
        found.percentiles.map { entry in
          [
            "p": entry.percentile.perMille % 10 == 0
              ? .integer(Int64(entry.percentile.perMille / 10))
              : .number(Double(entry.percentile.perMille) / 10),
            "value": .optional(entry.value), "lo": .optional(entry.low), "hi": .optional(entry.high),
          ]
        }),
      "hdr": .string(found.histogram.encoded),
    ]
  }

  /// The element of `comparisons` for a comparison of two targets. Times are rounded to 0.1 µs.
  private func comparison(_ found: Comparison) -> JSONValue {
    func tenths(_ value: Double) -> JSONValue { .number((value * 10).rounded() / 10) }
    return [
      "a": .string(found.a), "b": .string(found.b), "metric": .string(found.metric.name),
      "rounds": .integer(Int64(found.rounds)), "shift_us": tenths(found.shift),
      "lo": tenths(found.interval.lowerBound), "hi": tenths(found.interval.upperBound), "p": .number(found.p),
      "p_adjusted": .number(found.adjusted), "method": .string(found.method),
      "significant": .bool(found.isSignificant),
    ]
  }

  /// The element of `slo` for a target and an objective. `limit` and `value` are shares from 0 to 1 when the
  /// objective limits failures, and microseconds otherwise.
  private func verdict(_ verdict: Objective.Verdict) -> JSONValue {
    let isShare = verdict.objective.metric == .errors
    func value(_ number: Int64) -> JSONValue { isShare ? .number(Double(number) / 1e6) : .integer(number) }
    return [
      "objective": .string(verdict.objective.text), "target": .string(verdict.target),
      "block": .optional(verdict.block?.rawValue), "met": .bool(verdict.isMet),
      "unit": isShare ? "share" : "us", "limit": value(verdict.objective.limit),
      "value": verdict.value.map(value) ?? .null, "reason": .optional(verdict.reason),
    ]
  }

  /// The `picker` member: the choice of the start-up probe, compared with the measured times.
  private func picker(_ picker: BenchReport.Picker) -> JSONValue {
    [
      "chosen": .optional(picker.chosen?.description),
      "best": .optional(picker.best?.description),
      "regret_us": .optional(picker.regret),
      "kendall_tau": picker.kendallTau.map(JSONValue.number) ?? .null,
    ]
  }
}
