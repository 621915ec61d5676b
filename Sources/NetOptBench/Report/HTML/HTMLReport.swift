import NetOptCore

/// The report as one self-contained HTML file: charts in SVG, no scripts, and nothing to load from other
/// addresses.
package struct HTMLReport {
  private let report: BenchReport

  /// Makes a renderer.
  package init(_ report: BenchReport) { self.report = report }

  /// The page's HTML.
  package var text: String {
    let title = "netopt bench \(report.context.runID)"
    let targets = ChartedTargets(report)
    let rounds = RoundCharts(report, targets)
    let parts = [
      Markup.section("verdict", "Verdict and ranking", verdict),
      Markup.section("distribution", "Distribution", DistributionCharts(report, targets).markup),
      Markup.section("phases", "Phases", PhaseCharts(report).markup),
      Markup.section("rounds", "Round by round", rounds.overTime),
      Markup.section("difference", "Difference to \(reference ?? "a reference")", rounds.differences),
      Markup.section("regret", "Choice of the start-up ping", RegretChart(report).markup),
      Markup.section("data", "Command line and figures", DataTables(report).markup),
    ]
    return """
      <!DOCTYPE html>
      <html lang="en">
      <head>
      <meta charset="utf-8">
      <meta name="viewport" content="width=device-width, initial-scale=1">
      <meta name="color-scheme" content="light dark">
      <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
      <title>\(Markup.text(title))</title>
      <style>
      \(PageStyle.text)
      </style>
      </head>
      <body>
      <header>
      <h1>\(Markup.text(title))</h1>
      <p>\(Markup.text("\(report.settings.request.method) \(report.settings.request.url.shown)"))</p>
      \(partial)</header>
      <main>

      """ + parts.joined() + "</main>\n</body>\n</html>\n"
  }

  /// The name of the reference (`BenchTarget.id`); `nil` without a reference.
  private var reference: String? { report.reference?.target.id }

  /// A paragraph that says why the run is incomplete or measured nothing; an empty text for a complete run.
  private var partial: String {
    switch report.stopReason {
    case .interrupted:
      Markup.paragraph("Partial: the run was interrupted; unfinished rounds are excluded.", class: "bad")
    case .sampleLimit:
      Markup.paragraph("Partial: the run stopped at the maximum number of samples.", class: "bad")
    case .noTarget: Markup.paragraph("Nothing was measured: no target could be used.", class: "bad")
    case .completed: ""
    }
  }

  /// The section with the verdict, the ranking chart and the ranking table.
  private var verdict: String {
    var content = Verdict(report).map { Markup.paragraph("\($0.text).", class: "verdict") } ?? ""
    let block = report.rankingBlock
    let ranks = report.ranks
    if ranks.isEmpty {
      content += Markup.paragraph(
        "No target has a median: this needs \(report.settings.order.needed(for: .p50)) samples of a target.")
    } else {
      content += RankingChart(report).markup
    }
    let time = Milliseconds(smallest: ranks.first?.target.median(block))
    func cell(_ entry: Distribution.Entry?) -> String {
      entry.map { $0.value.map(time.text) ?? "timeout" } ?? "-"
    }
    var rows = report.ranking.map { result -> [String] in
      let found = result.blocks[block]
      let rank = ranks.first { $0.target.target == result.target }.map {
        "\($0.rank)\($0.isShared ? "=" : "")"
      }
      let median = found?.response.entry(.p50)
      let interval = median.map { entry in
        [entry.low, entry.high].map { $0.map(time.text) ?? "timeout" }.joined(separator: " to ")
      }
      return [
        result.target.id, rank ?? "-", RankingTable.ok(result, block), cell(median),
        interval ?? "-", cell(found?.response.entry(.p95)), cell(found?.response.entry(.p99)), beside(result),
      ]
    }
    rows += report.targets.compactMap { result in
      result.exclusion.map { [result.target.id, "excluded", "-", "-", "-", "-", "-", $0.reason] }
    }
    content += Markup.table(
      "Response times of the \(block.rawValue) requests in ms. Targets that cannot be told apart share a rank.",
      [
        "Target", "Rank", "OK", "p50", "interval of p50", "p95", "p99",
        "against \(reference ?? "the reference")",
      ],
      rows)
    return content
  }

  /// The text of the table cell that compares a target with the reference at p50; "-" when there is no
  /// comparison.
  private func beside(_ result: BenchReport.TargetResult) -> String {
    if result.target.id == reference { return "reference" }
    guard let comparison = report.comparison(of: result.target.id) else { return "-" }
    let p = PValue.text(comparison.adjusted)
    guard comparison.isSignificant else { return "no difference found (\(p))" }
    return "\(Milliseconds.percent(comparison.relative)) % (\(p))"
  }
}

/// The targets in those charts that have one line for each target, and the colours of the lines. The number
/// of these targets is limited, because a chart with dozens of lines is unreadable.
struct ChartedTargets {
  /// The maximum number of targets in a chart. `PageStyle` has a colour for each.
  static let most = 8
  /// The targets in the charts, the best first, each with the index of its colour in `PageStyle`.
  let all: [(result: BenchReport.TargetResult, colour: Int)]
  /// A sentence about the targets that the charts leave out, for the end of a description; empty when the
  /// charts contain all targets.
  let note: String

  /// Selects the first `most` targets of the ranking. If the reference is not among them, it takes the place
  /// of the last one.
  init(_ report: BenchReport) {
    let ranking = report.ranking
    var chosen = Array(ranking.prefix(Self.most))
    if let reference = report.reference, !chosen.contains(where: { $0.target == reference.target }) {
      chosen[chosen.count - 1] = reference
    }
    all = chosen.enumerated().map { ($0.element, $0.offset) }
    note =
      ranking.count > chosen.count
      ? " The other \(ranking.count - chosen.count) targets are in the table." : ""
  }

  /// The legend of the lines as HTML. It shows a piece of each line in its colour and dash pattern. A
  /// coloured background instead would not be enough: browsers do not print backgrounds, and colour alone
  /// does not help people who cannot distinguish colours.
  var legend: String {
    Markup.legend(
      all.map {
        (
          "<line class=\"line c\($0.colour)\" x1=\"0\" x2=\"40\" y1=\"5\" y2=\"5\"/>", $0.result.target.id
        )
      })
  }
}
