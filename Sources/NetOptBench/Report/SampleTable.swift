import NetOptCore

/// The samples of a run as comma-separated values (RFC 4180), one line for each sample. Lines end with a line
/// feed and not, as in the RFC, with CRLF. Times are in microseconds.
package struct SampleTable {
  private let report: BenchReport

  /// Makes a renderer.
  package init(_ report: BenchReport) { self.report = report }

  /// The text in chunks: the heading line, then one chunk for each target of each block.
  package var chunks: [String] {
    let phases = SamplePhase.allCases
    let heading =
      "block,round,target,outcome,lag_us,response_us,service_us,"
      + phases.map { "\($0.rawValue)_us" }.joined(separator: ",") + "\n"
    return [heading]
      + report.settings.blocks.flatMap { block in
        report.targets.compactMap { result -> String? in
          guard let series = result.blocks[block]?.series else { return nil }
          return series.kinds.indices.map { index in
            let isSuccess = series.kinds[index] == .ok
            // A failed request has no phases.
            let columns = phases.map { isSuccess ? "\(series.phase($0, index))" : "" }.joined(separator: ",")
            return "\(block.rawValue),\(index),\(result.target.id),\(series.kinds[index].rawValue),"
              + "\(series.lag(index)),\(series.response(index)),\(series.service(index)),\(columns)\n"
          }.joined()
        }
      }
  }
}

/// The report as Markdown: the ranking as a table, followed by the verdict.
package struct MarkdownReport {
  private let report: BenchReport

  /// Makes a renderer.
  package init(_ report: BenchReport) { self.report = report }

  /// The Markdown text.
  package var text: String {
    let block = report.rankingBlock
    let ranking = report.ranking
    let time = Milliseconds(smallest: ranking.compactMap { $0.median(block) }.min())
    let ranks = report.ranks
    let reference = report.reference?.target.id
    var lines = [
      "| # | Target | OK | p50 [ms] | interval | p95 [ms] | p99 [ms] | vs \(reference ?? "reference") |",
      "|:--|:--|--:|--:|:--|--:|--:|:--|",
    ]
    for result in ranking {
      let found = result.blocks[block]
      let rank = ranks.first { $0.target.target == result.target }
      func cell(_ percentile: Percentile) -> String {
        found?.response.entry(percentile).map { $0.value.map(time.text) ?? "timeout" } ?? "-"
      }
      let interval = found?.response.entry(.p50).map { entry in
        [entry.low, entry.high].map { $0.map(time.text) ?? "timeout" }.joined(separator: " to ")
      }
      lines.append(
        "| \(rank.map { "\($0.rank)\($0.isShared ? "=" : "")" } ?? "-") | `\(result.target.id)` | "
          + "\(RankingTable.ok(result, block)) | \(cell(.p50)) | \(interval ?? "-") | "
          + "\(cell(.p95)) | \(cell(.p99)) | \(beside(result, reference)) |")
    }
    for result in report.targets {
      guard let exclusion = result.exclusion else { continue }
      lines.append(
        "| ! | `\(result.target.id)` | excluded | \(Self.escaped(TextLayout.printable(exclusion.reason))) | | | | |"
      )
    }
    if let verdict = Verdict(report) { lines += ["", "\(verdict.text)."] }
    return lines.map { $0 + "\n" }.joined()
  }

  /// The table cell that compares a target with the reference. `~` stands for a difference that is not
  /// significant.
  private func beside(_ result: BenchReport.TargetResult, _ reference: String?) -> String {
    if result.target.id == reference { return "reference" }
    guard let comparison = report.comparison(of: result.target.id) else { return "-" }
    let p = PValue.text(comparison.adjusted)
    guard comparison.isSignificant else { return "~ (\(p))" }
    return "\(Milliseconds.percent(comparison.relative)) % (\(p))"
  }

  /// Puts a backslash before every character that could have a meaning in Markdown (CommonMark 0.31, section
  /// 2.4). The text may contain names from certificates and messages of servers.
  private static func escaped(_ text: String) -> String {
    // The loop visits scalars, not characters: a vertical bar with a combining accent is not an ASCII
    // character, but its bar still ends a table cell.
    var escaped = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
      let value = scalar.value
      let isPlain =
        value == 0x20 || value > 0x7e || scalar.properties.isAlphabetic || (0x30...0x39).contains(value)
      if !isPlain { escaped.append("\\") }
      escaped.append(scalar)
    }
    return String(escaped)
  }
}
