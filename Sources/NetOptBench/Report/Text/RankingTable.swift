import NetOptCore

/// The table of the text report: the targets by rank, then the excluded targets.
struct RankingTable {
  /// The percentiles that have a column in addition to p50.
  private static let shown = [Percentile.p95, .p99]
  /// The maximum width of the name column. All widths are in characters.
  private static let widestName = 24
  /// The width of the column with p50 and its interval.
  private static let medianWidth = 20

  private let report: BenchReport
  /// The measured targets, the best first (`BenchReport.ranking`).
  private let ranking: [BenchReport.TargetResult]
  /// For each target's name, the rank as text: `2=` for a shared rank, `2 ` otherwise.
  private let ranks: [String: String]
  /// The format of all times in the table.
  private let time: Milliseconds
  /// The percentiles of `shown` that at least one target has.
  private let columns: [Percentile]
  private let colour: TextColour
  /// The width of the column OK, which has the numbers of successful requests and of all requests.
  private let okWidth: Int
  /// The width of the name column.
  let nameWidth: Int

  /// Decides the columns and their widths.
  init(_ report: BenchReport, _ colour: TextColour) {
    self.report = report
    self.colour = colour
    let block = report.rankingBlock
    let ranking = report.ranking
    self.ranking = ranking
    ranks = Dictionary(
      uniqueKeysWithValues: report.ranks.map {
        ($0.target.target.id, "\($0.rank)" + ($0.isShared ? "=" : " "))
      })
    time = Milliseconds(smallest: ranking.compactMap { $0.median(block) }.min())
    columns = Self.shown.filter { percentile in
      ranking.contains { $0.blocks[block]?.response.entry(percentile) != nil }
    }
    okWidth = max(9, ranking.map { Self.ok($0, block).count + 2 }.max() ?? 0)
    let names = report.targets.map(\.target.id.count).max() ?? 0
    // The width that the other columns leave for the name, so that the table fits into 80 columns.
    let rest = TextLayout.width - 4 - okWidth - Self.medianWidth - columns.count * 8 - 12
    nameWidth = max(12, min(max(names, 13), Self.widestName, rest))
  }

  /// The lines of the table: title, heading, measured targets, excluded targets.
  var lines: [String] {
    let block = report.rankingBlock
    let reference = report.reference
    let isControl = reference?.target.kind == .dns
    let answers = report.dnsAnswers.flatMap { isControl ? " (\($0) answer\($0 == 1 ? "" : "s"))" : nil } ?? ""
    let title = TextLayout.ends(
      "RANK  by p50, ms, \(block.rawValue)",
      reference.map { "reference: \($0.target.id)\(answers)" } ?? "no reference")
    let percent = Milliseconds.decimal(Int64(clamped: (1000 * (1 - report.settings.alpha)).rounded()), 1)
      .replacing(".0", with: "")
    let heading =
      " #  " + TextLayout.left("TARGET", nameWidth) + TextLayout.right("OK", okWidth)
      + TextLayout.right("p50 [\(percent)% CI]", Self.medianWidth)
      + columns.map { TextLayout.right($0.name, 8) }.joined()
      + (reference?.median(block) == nil ? "" : TextLayout.right(isControl ? "vs dns" : "vs ref", 12))
    let rows = ranking.flatMap(row)
    return title + [heading] + rows + report.targets.filter { $0.exclusion != nil }.flatMap(excluded)
  }

  /// A sentence that names the percentiles, among p50, p95 and p99, for which some target has too few
  /// samples, and says how many samples they need. `nil` when every target has enough samples for all three.
  var missing: String? {
    let block = report.rankingBlock
    let order = report.settings.order
    guard let least = ranking.map({ $0.blocks[block]?.response.total ?? 0 }).min() else { return nil }
    let missing = [Percentile.p50, .p95, .p99].filter { least < order.needed(for: $0) }
    guard !missing.isEmpty else { return nil }
    let needs = missing.map { "\($0.name) needs \(order.needed(for: $0))" }.joined(separator: ", ")
    return "\(needs) samples of a target: raise -n or -z"
  }

  /// The explanation of the mark `!` in the column OK; `nil` when no target has the mark.
  var mark: String? {
    ranking.contains(where: \.failsOften)
      ? "!: significantly more than \(Int(FailureLimit.share * 100)) % of the requests to it failed, so it cannot be the best target"
      : nil
  }

  /// The lines of a measured target.
  private func row(_ result: BenchReport.TargetResult) -> [String] {
    let block = report.rankingBlock
    let found = result.blocks[block]
    let ok = TextLayout.right(Self.ok(result, block), okWidth)
    let failed = (found?.response.count ?? 0) < (found?.requests ?? 0)
    var cells = failed ? colour.red(ok) : ok
    cells += TextLayout.right(found.map(median) ?? "-", Self.medianWidth)
    for percentile in columns {
      let entry = found?.response.entry(percentile)
      cells += TextLayout.right(entry.map { $0.value.map(time.text) ?? "timeout" } ?? "-", 8)
    }
    if let reference = report.reference, reference.median(block) != nil { cells += beside(reference, result) }
    let rank = ranks[result.target.id] ?? "- "
    return named(TextLayout.right(rank, 3) + " ", result.target.id, cells)
  }

  /// The text of p50 and its interval: `24.1 [23.9 24.4]`. A value among the timeouts reads `timeout`.
  private func median(_ found: BenchReport.BlockResult) -> String {
    guard let entry = found.response.entry(.p50) else { return "-" }
    guard let value = entry.value else { return "timeout" }
    let ends = [entry.low, entry.high].map { $0.map(time.text) ?? "timeout" }
    return "\(time.text(value)) [\(ends.joined(separator: " "))]"
  }

  /// The cell that compares a target with the reference. `~` stands for a difference that is not significant.
  /// A significant difference is green when the target is faster, and red when it is slower.
  private func beside(_ reference: BenchReport.TargetResult, _ result: BenchReport.TargetResult) -> String {
    if result.target == reference.target { return TextLayout.right("reference", 12) }
    guard let comparison = report.comparison(of: result.target.id) else { return TextLayout.right("-", 12) }
    guard comparison.isSignificant else {
      return TextLayout.right("~ (\(PValue.text(comparison.adjusted)))", 12)
    }
    let text = TextLayout.right(Milliseconds.percent(comparison.relative) + "%", 12)
    return comparison.shift < 0 ? colour.green(text) : colour.red(text)
  }

  /// The lines of an excluded target, with the reason.
  private func excluded(_ result: BenchReport.TargetResult) -> [String] {
    let reason = TextLayout.printable(result.exclusion?.reason ?? "")
    let margin = 4 + nameWidth + 2 + "excluded  ".count
    let lines = TextLayout.wrapped(reason, at: TextLayout.width - margin, lines: 3)
    let first = named(" !  ", result.target.id, "  excluded  " + (lines.first ?? ""))
    let more = lines.dropFirst().map { String(repeating: " ", count: margin) + $0 }
    return (first + more).map(colour.red)
  }

  /// A row of the table. A name that is too long for its column gets a line of its own, above the cells.
  ///
  /// - Parameters:
  ///   - mark: the text before the name: the rank, or `!` for an excluded target.
  ///   - cells: the text of all columns after the name.
  private func named(_ mark: String, _ name: String, _ cells: String) -> [String] {
    TextLayout.row(mark + name, mark.count + nameWidth, cells)
  }

  /// The number of successful requests and the number of all requests in a block: `77/80`. A `!` follows when
  /// the target fails too often to be called the best.
  static func ok(_ result: BenchReport.TargetResult, _ block: Block) -> String {
    "\(result.blocks[block]?.response.count ?? 0)/\(result.blocks[block]?.requests ?? 0)"
      + (result.failsOften ? "!" : "")
  }
}

/// The format of p values.
enum PValue {
  /// Formats a p value: `p=0.41`, `p<0.001`.
  static func text(_ p: Double) -> String {
    if p < 0.001 { return "p<0.001" }
    if p < 0.01 { return "p=" + Milliseconds.decimal(Int64(clamped: (p * 1000).rounded()), 3) }
    return "p=" + Milliseconds.decimal(Int64(clamped: (p * 100).rounded()), 2)
  }
}
