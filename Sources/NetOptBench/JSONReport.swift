import FoundationEssentials
package import NetOptCore

/// The report for programs: `docs/schemas/bench.schema.json`. All times are whole microseconds unless a name says
/// otherwise.
package struct JSONReport {
  private let report: BenchReport

  /// Makes a renderer.
  package init(_ report: BenchReport) { self.report = report }

  /// The report as one object.
  package var value: JSONValue {
    let context = report.context
    let settings = report.settings
    return [
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
        "url": .string(settings.request.url.description),
        "http_version": .optional(report.version?.rawValue),
      ],
      "plan": plan,
      "rounds": perBlock { report.rounds[$0] ?? 0 },
      "targets": .array(report.targets.map(target)),
      "picker": report.picker.map(picker) ?? .null,
      "warnings": .array(report.warnings.map { ["code": .string($0.code), "text": .string($0.text)] }),
    ]
  }

  private var plan: JSONValue {
    var seconds = JSONValue.null
    if case .duration(let duration) = report.settings.length {
      seconds = .number(Double(duration.nanoseconds) / 1e9)
    }
    return [
      "rounds": perBlock(report.settings.length.rounds),
      "duration_s": seconds,
      "warmup": report.settings.blocks.contains(.warm) ? .integer(Int64(report.settings.warmup)) : 0,
    ]
  }

  /// A number for each block; `null` for one that is not run, or that has no such number.
  private func perBlock(_ number: (Block) -> Int?) -> JSONValue {
    func value(_ block: Block) -> JSONValue {
      .optional(report.settings.blocks.contains(block) ? number(block) : nil)
    }
    return ["cold": value(.cold), "warm": value(.warm)]
  }

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
      "tls", result.tls.map { ["verified": .bool($0.verified), "version": .optional($0.version)] } ?? .null)
    members.append(
      "counts",
      .object(SampleKind.allCases.map { .init($0.rawValue, .integer(Int64(result.counts[$0] ?? 0))) }))
    members.append("cold", result.blocks[.cold].map(block) ?? .null)
    members.append("warm", result.blocks[.warm].map(block) ?? .null)
    return members
  }

  private func block(_ found: BenchReport.BlockResult) -> JSONValue {
    var response = distribution(found.response)
    response.append("timeouts", .integer(Int64(found.response.timeouts)))
    return [
      "n": .integer(Int64(found.requests)),
      "reused": .integer(Int64(found.reused)),
      "response_us": response,
      "phases_us": .object(
        SamplePhase.allCases.map { phase in
          .init(phase.rawValue, distribution(found.phases[phase] ?? Distribution([])))
        }),
    ]
  }

  private func distribution(_ found: Distribution) -> JSONValue {
    [
      "n": .integer(Int64(found.count)),
      "min": .optional(found.minimum),
      "max": .optional(found.maximum),
      // A tenth of a microsecond is more than the clock tells.
      "mean": found.mean.map { .number(($0 * 10).rounded() / 10) } ?? .null,
      "mad": .optional(found.deviation),
      "percentiles": .array(
        found.percentiles.map { ["p": .integer(Int64($0.percentile)), "value": .optional($0.value)] }),
    ]
  }

  private func picker(_ picker: BenchReport.Picker) -> JSONValue {
    [
      "chosen": .optional(picker.chosen?.description),
      "best": .optional(picker.best?.description),
      "regret_us": .optional(picker.regret),
    ]
  }
}
