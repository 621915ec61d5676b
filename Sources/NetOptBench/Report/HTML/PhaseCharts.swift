/// Charts of the phases, one for each block of the run. Each target has a bar with one part for each phase.
/// The length of a part is the median duration of the phase. A chart shows the first 40 targets of the
/// ranking.
struct PhaseCharts {
  private let report: BenchReport

  init(_ report: BenchReport) { self.report = report }

  /// The charts and their legend as HTML, or a sentence when there are too few samples for medians.
  var markup: String {
    let charts = report.settings.blocks.map(chart).joined()
    let keys = SamplePhase.allCases.map { phase in
      ("<rect class=\"p-\(phase.rawValue)\" width=\"40\" height=\"10\"/>", phase.rawValue)
    }
    return charts.isEmpty
      ? Markup.paragraph("There are too few samples for the medians of phases.")
      : Markup.legend(keys) + charts
  }

  /// The chart of a block as HTML; an empty text when no target has a median of a phase in this block.
  private func chart(_ block: Block) -> String {
    let rows = report.ranking.prefix(40).compactMap { result -> (String, [(SamplePhase, Double)])? in
      guard let phases = result.blocks[block]?.phases else { return nil }
      let medians = SamplePhase.allCases.compactMap { phase in
        phases[phase]?.value(.p50).map { (phase, Double($0) / 1000) }
      }
      return medians.isEmpty ? nil : (result.target.id, medians)
    }
    guard let high = rows.map({ $0.1.reduce(0) { $0 + $1.1 } }).max(), let first = rows.first else {
      return ""
    }
    let words = first.1.filter { $0.1 >= 0.05 }.map { "\($0.0.rawValue) \(Markup.number($0.1))" }
    let longest = rows.map(\.0.count).max() ?? 0
    var chart = Chart(
      "phases-\(block.rawValue)", title: "Phases of \(block.rawValue) requests",
      description:
        "The medians of the phases of \(block.rawValue) requests, one after the other. The medians of \(first.0) in ms: \(words.joined(separator: ", ")).",
      x: Scale(.linear, 0, high), "median time of \(block.rawValue) requests, ms", y: nil, "",
      height: 60 + 28 * Double(rows.count), margin: min(300, 30 + 7.5 * Double(longest)))
    for (index, (id, medians)) in rows.enumerated() {
      let row = chart.row(index, of: rows.count)
      chart.name(id, row: row)
      var start = 0.0
      for (phase, median) in medians where median > 0 {
        chart.bar(
          row, from: start, to: start + median, thick: 18, class: "p-\(phase.rawValue)",
          "\(id): \(phase.rawValue) \(Markup.number(median)) ms")
        start += median
      }
    }
    return chart.markup
  }
}
