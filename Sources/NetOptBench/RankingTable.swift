/// The table of the text report: the targets by p50, then those that were left out.
struct RankingTable {
  private static let shown = [50, 95, 99]
  private static let widestName = 24

  private let report: BenchReport
  private let ranking: [BenchReport.TargetResult]
  private let time: Milliseconds
  private let columns: [Int]
  private let colour: TextColour
  private let okWidth: Int
  /// The width of the column of names.
  let nameWidth: Int

  /// Lays the table out.
  init(_ report: BenchReport, _ colour: TextColour) {
    self.report = report
    self.colour = colour
    let block = report.rankingBlock
    let ranking = report.ranking
    self.ranking = ranking
    time = Milliseconds(smallest: ranking.compactMap { $0.median(block) }.min())
    columns = Self.shown.filter { percentile in
      ranking.contains { result in
        result.blocks[block]?.response.percentiles.contains { $0.percentile == percentile } ?? false
      }
    }
    let names = report.targets.map(\.target.id.count).max() ?? 0
    nameWidth = min(max(names, 15), Self.widestName)
    okWidth = max(9, ranking.map { Self.ok($0, block).count + 2 }.max() ?? 0)
  }

  /// The lines of the table.
  var lines: [String] {
    let block = report.rankingBlock
    let reference = report.reference
    let answers = report.dnsAnswers.map { " (\($0) answer\($0 == 1 ? "" : "s"))" } ?? ""
    let title = TextLayout.ends(
      "RANK  by p50, ms, \(block.rawValue)", reference == nil ? "no reference" : "reference: dns\(answers)")
    let heading =
      " #  " + TextLayout.left("TARGET", nameWidth) + TextLayout.right("OK", okWidth)
      + columns.map { TextLayout.right("p\($0)", 9) }.joined()
      + (reference?.median(block) == nil ? "" : TextLayout.right("vs dns", 11))
    let rows = ranking.enumerated().flatMap { row($0.element, rank: $0.offset + 1) }
    return title + [heading] + rows + report.targets.filter { $0.exclusion != nil }.flatMap(excluded)
  }

  /// The percentiles that no target, or not every target, has enough samples for, as a sentence; `nil` when all have.
  var missing: String? {
    let block = report.rankingBlock
    guard let least = ranking.map({ $0.blocks[block]?.response.total ?? 0 }).min() else { return nil }
    let missing = Self.shown.filter { least < Percentiles.needed(for: $0) }
    guard !missing.isEmpty else { return nil }
    let needs = missing.map { "p\($0) needs \(Percentiles.needed(for: $0))" }.joined(separator: ", ")
    return "\(needs) samples of a target: raise -n or -z"
  }

  private func row(_ result: BenchReport.TargetResult, rank: Int) -> [String] {
    let block = report.rankingBlock
    let found = result.blocks[block]
    let median = result.median(block)
    let ok = TextLayout.right(Self.ok(result, block), okWidth)
    let failed = (found?.response.count ?? 0) < (found?.requests ?? 0)
    var cells = failed ? colour.red(ok) : ok
    for percentile in columns {
      let value = found?.response.percentiles.first { $0.percentile == percentile }
      let text = value.map { $0.value.map(time.text) ?? "timeout" } ?? "-"
      cells += TextLayout.right(text, 9)
    }
    if let reference = report.reference, let base = reference.median(block) {
      let isReference = result.target == reference.target
      cells += TextLayout.right(
        isReference ? "reference" : median.map { Self.percent($0, of: base) } ?? "-", 11)
    }
    let number = TextLayout.right(median == nil ? "-" : "\(rank)", 2) + "  "
    return named(number, result.target.id, cells)
  }

  private func excluded(_ result: BenchReport.TargetResult) -> [String] {
    let reason = TextLayout.printable(result.exclusion?.reason ?? "")
    let margin = 4 + nameWidth + 2 + "excluded  ".count
    let lines = TextLayout.wrapped(reason, at: TextLayout.width - margin, lines: 3)
    let first = named(" !  ", result.target.id, "  excluded  " + (lines.first ?? ""))
    let more = lines.dropFirst().map { String(repeating: " ", count: margin) + $0 }
    return (first + more).map(colour.red)
  }

  /// A row; a name that is too long for its column stands on a line of its own.
  private func named(_ mark: String, _ name: String, _ cells: String) -> [String] {
    if name.count <= nameWidth { return [mark + TextLayout.left(name, nameWidth) + cells] }
    return [mark + name, String(repeating: " ", count: 4 + nameWidth) + cells]
  }

  private static func ok(_ result: BenchReport.TargetResult, _ block: Block) -> String {
    "\(result.blocks[block]?.response.count ?? 0)/\(result.blocks[block]?.requests ?? 0)"
  }

  /// How much more or less a time is than another: `-18.3%`.
  private static func percent(_ value: Int64, of base: Int64) -> String {
    guard base > 0 else { return "-" }
    let tenths = Int64((Double(value - base) / Double(base) * 1000).rounded())
    return (tenths > 0 ? "+" : "") + Milliseconds.decimal(tenths, 1) + "%"
  }
}
