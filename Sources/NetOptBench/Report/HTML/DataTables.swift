import FoundationEssentials
import NetOptCore

/// The last section of the page: the command line, and all figures of the report in tables.
struct DataTables {
  private let report: BenchReport

  init(_ report: BenchReport) { self.report = report }

  /// The section's content as HTML.
  var markup: String {
    let words = ["netopt"] + report.context.arguments.map(Self.quoted)
    return "<pre>\(Markup.text(words.joined(separator: " ")))</pre>\n" + runTable + warnings
      + report.settings.blocks.map(percentiles).joined() + failures + comparisons + objectives + drills
  }

  /// The table about the run itself: start, duration, rounds, seed, load, system, and versions of the
  /// libraries.
  private var runTable: String {
    let context = report.context
    let host = context.host
    let rounds = report.settings.blocks.map { "\(report.rounds[$0] ?? 0) \($0.rawValue)" }.joined(
      separator: ", ")
    return Markup.table(
      "The run", ["", ""],
      [
        ["started", context.startedAt.formatted(.iso8601)],
        ["took", "\(Milliseconds.decimal(report.elapsed.nanoseconds / 100_000_000, 1)) s"],
        ["rounds", rounds],
        ["seed", "\(report.settings.seed)"],
        [
          "load",
          report.settings.rate.map {
            "\(Markup.number($0)) requests/s, \(report.lateStarts) of \(report.openLoopRequests) late"
          }
            ?? "one after the other, \(report.settings.concurrency) connections, \(report.settings.streams) streams",
        ], ["netopt", context.version], ["system", host.os],
        ["libraries", "libcurl \(host.libcurl ?? "-"), \(host.tls ?? "-"), c-ares \(host.cares ?? "-")"],
      ])
  }

  /// The warnings of the report as a list; empty without warnings.
  private var warnings: String {
    report.warnings.isEmpty
      ? ""
      : "<h3>Warnings</h3>\n<ul>\n" + report.warnings.map { "<li>\(Markup.text($0.text))</li>\n" }.joined()
        + "</ul>\n"
  }

  /// The table with the distribution of each target's times in a block; empty when no target has results in
  /// the block.
  private func percentiles(_ block: Block) -> String {
    let time = Milliseconds(smallest: report.targets.compactMap { $0.blocks[block]?.response.minimum }.min())
    let rows = report.targets.flatMap { result -> [[String]] in
      guard let found = result.blocks[block] else { return [] }
      let kinds =
        [("response", found.response)] + (report.settings.rate == nil ? [] : [("service", found.service)])
      return kinds.map { name, distribution in
        let cells = Percentile.reported.map { percentile in
          distribution.entry(percentile).map { entry in
            let ends = [entry.low, entry.high].map { $0.map(time.text) ?? "timeout" }
            return "\(entry.value.map(time.text) ?? "timeout") [\(ends.joined(separator: " "))]"
          } ?? "-"
        }
        return [result.target.id, name, "\(distribution.count)"] + cells
          + [distribution.minimum, distribution.maximum, distribution.medianDeviation].map {
            $0.map(time.text) ?? "-"
          }
      }
    }
    return rows.isEmpty
      ? ""
      : Markup.table(
        "Times of \(block.rawValue) requests in ms, with the intervals of the percentiles",
        ["Target", "time", "n"] + Percentile.reported.map(\.name) + ["min", "max", "MAD"], rows)
  }

  /// The table with the number of requests of each kind for each target. Successful requests are one of the
  /// kinds.
  private var failures: String {
    let kinds = SampleKind.allCases
    return Markup.table(
      "Requests by result", ["Target"] + kinds.map(\.label),
      report.targets.map { result in [result.target.id] + kinds.map { "\(result.counts[$0] ?? 0)" } })
  }

  /// The table with the comparisons of targets; empty without comparisons.
  private var comparisons: String {
    guard !report.comparisons.isEmpty else { return "" }
    return Markup.table(
      "Comparisons, paired by round",
      [
        "Target", "with", "at", "rounds", "shift, ms", "interval, ms", "p", "p adjusted", "significant",
        "method",
      ],
      report.comparisons.map { found in
        func text(_ value: Double) -> String { Milliseconds.decimal(Int64(clamped: value.rounded()), 3) }
        return [
          found.a, found.b, found.metric.name, "\(found.rounds)", text(found.shift),
          "\(text(found.interval.lowerBound)) to \(text(found.interval.upperBound))", PValue.text(found.p),
          PValue.text(found.adjusted), found.isSignificant ? "yes" : "no", found.method,
        ]
      })
  }

  /// A paragraph for each dead address of the failover drill; empty when the drill did not run.
  private var drills: String {
    guard let drills = report.drills, !drills.isEmpty else { return "" }
    return "<h3>Failover drill</h3>\n"
      + drills.map { Markup.paragraph($0.lines.joined(separator: " ").replacing("DRILL   ", with: "")) }
      .joined()
  }

  /// The table that says for each objective which targets meet it; empty without objectives.
  private var objectives: String {
    guard !report.verdicts.isEmpty else { return "" }
    return Markup.table(
      "Objectives", ["Objective", "target", "met", "value"],
      report.verdicts.map { verdict in
        let value = verdict.value.map { number in
          verdict.objective.metric == .errors
            ? "\(Milliseconds.decimal(number / 100, 2)) %" : "\(Milliseconds.decimal(number, 3)) ms"
        }
        return [
          verdict.objective.text, verdict.target, verdict.isMet ? "yes" : "no",
          value ?? verdict.reason ?? "-",
        ]
      })
  }

  /// Quotes a word for a shell, if the word is empty or contains a character that a shell could act on.
  private static func quoted(_ word: String) -> String {
    let plain = word.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "-_=./:,@%+".contains($0)) }
    return plain && !word.isEmpty ? word : "'" + word.replacing("'", with: "'\\''") + "'"
  }
}
