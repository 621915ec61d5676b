import NetOptCore

/// A chart of the targets' median response times with their confidence intervals, one row per target. It
/// shows the first 40 targets of the ranking.
struct RankingChart {
  private let report: BenchReport

  init(_ report: BenchReport) { self.report = report }

  /// The chart as HTML; an empty text when no target has a p50.
  var markup: String {
    let block = report.rankingBlock
    // Each target has a row of its own, so this chart has room for more targets than a line chart.
    let rows = report.ranks.prefix(40).compactMap { ranked -> (String, Int, Int64, Int64, Int64)? in
      guard let entry = ranked.target.blocks[block]?.response.entry(.p50), let value = entry.value else {
        return nil
      }
      return (ranked.target.target.id, ranked.rank, value, entry.low ?? value, entry.high ?? value)
    }
    guard let low = rows.map(\.3).min(), let high = rows.map(\.4).max() else { return "" }
    let longest = rows.map(\.0.count).max() ?? 0
    let best = rows[0]
    var chart = Chart(
      "ranking", title: "Median response times with their intervals",
      description:
        "Each dot is the median of a target's \(block.rawValue) requests, and each bar its \(Markup.number(100 * (1 - report.settings.alpha))) % confidence interval; \(best.0) has the lowest median with \(Markup.number(Double(best.2) / 1000)) ms.",
      x: Scale(.linear, Double(low) / 1000, Double(high) / 1000),
      "p50 of \(block.rawValue) response times, ms",
      y: nil, "", height: 60 + 26 * Double(rows.count), margin: min(300, 40 + 7.5 * Double(longest)))
    for (index, (id, rank, value, low, high)) in rows.enumerated() {
      let row = chart.row(index, of: rows.count)
      let title =
        "\(id): \(Markup.number(Double(value) / 1000)) ms, \(Markup.number(Double(low) / 1000)) to \(Markup.number(Double(high) / 1000))"
      chart.name("\(rank)  \(id)", row: row)
      chart.bar(row, from: Double(low) / 1000, to: Double(high) / 1000, thick: 6, class: "span c0", title)
      chart.dot(chart.xPosition(of: Double(value) / 1000), row, class: "c0", title)
    }
    return chart.markup
  }
}

/// A chart that shows whether the start-up probe (in the reports: "start-up ping") chose a good address. Each
/// address of the list has a bar with its median response time. Marks show the address that the probe chose
/// and the address with the lowest median. The chart shows the first 40 addresses of the ranking.
struct RegretChart {
  private let report: BenchReport

  init(_ report: BenchReport) { self.report = report }

  /// A sentence about the choice and, below it, the chart, as HTML. Only a sentence when the probe chose no
  /// address, or when no address of the list has a median.
  var markup: String {
    guard let picker = report.picker else { return Markup.paragraph("No address of the list was measured.") }
    guard let chosen = picker.chosen else {
      return Markup.paragraph("The start-up ping found no endpoint to choose.")
    }
    let regret =
      picker.regret.map { $0 == 0 ? "0" : "\(Milliseconds(smallest: $0).text($0)) ms" } ?? "unknown"
    var sentence = "The start-up ping chose \(chosen), with a regret of \(regret)"
    if picker.isTie, picker.regret != 0 { sentence += ", a tie with the best" }
    if let tau = picker.kendallTau {
      sentence +=
        "; its ranking and the measured one agree with a Kendall tau of \(Milliseconds.decimal(Int64(clamped: (tau * 100).rounded()), 2))"
    }
    let block = report.rankingBlock
    let rows = report.ranking.filter { $0.target.kind == .ip }.compactMap { result in
      result.median(block).map { (result.target.id, Double($0) / 1000) }
    }.prefix(40)
    guard let high = rows.map(\.1).max() else { return Markup.paragraph(sentence + ".") }
    let longest = rows.map(\.0.count).max() ?? 0
    var chart = Chart(
      "regret-chart", title: "Median response time of each address of the list",
      description: "The median of each address, the chosen and the best one marked. \(sentence).",
      x: Scale(.linear, 0, high), "p50 of \(block.rawValue) response times, ms", y: nil, "",
      height: 60 + 26 * Double(rows.count), margin: min(420, 90 + 7.5 * Double(longest)))
    for (index, (id, value)) in rows.enumerated() {
      let marks = [id == chosen.description ? "chosen" : nil, id == picker.best?.description ? "best" : nil]
        .compactMap { $0 }
      let row = chart.row(index, of: rows.count)
      chart.name(id + (marks.isEmpty ? "" : " (\(marks.joined(separator: ", ")))"), row: row)
      chart.bar(
        row, from: 0, to: value, thick: 14, class: id == chosen.description ? "span c1" : "span c0",
        "\(id): \(Markup.number(value)) ms")
    }
    return Markup.paragraph(sentence + ".") + chart.markup
  }
}
