import NetOptCore

/// The report for people, 80 columns wide.
package struct TextReport {
  private let report: BenchReport
  private let colour: TextColour

  /// Makes a renderer.
  package init(_ report: BenchReport, colour: TextColour = TextColour(isOn: false)) {
    self.report = report
    self.colour = colour
  }

  /// The report's text, with a line end after each line.
  package var text: String {
    let table = RankingTable(report, colour)
    var lines = heading + [""]
    if report.targets.isEmpty {
      lines.append("Nothing was measured: there is no target.")
    } else {
      lines += table.lines
      if report.stopReason == .noTarget { lines.append("Nothing was measured: no target could be used.") }
    }
    lines += failures + picker
    if let missing = table.missing { lines += TextLayout.hanging("NOTE    ", missing) }
    lines += phases(nameWidth: table.nameWidth)
    return lines.map { $0 + "\n" }.joined()
  }

  private var heading: [String] {
    let settings = report.settings
    let version = report.version.map { $0 == .http2 ? "h2" : $0 == .http3 ? "h3" : "http/\($0)" } ?? "-"
    let first = TextLayout.ends(
      "netopt bench  \(settings.request.url)",
      "\(settings.request.method) \(version)   run \(report.context.runID)")
    let used = report.targets.count { $0.exclusion == nil }
    let rounds = [Block.warm, .cold].filter(settings.blocks.contains).map {
      "\(report.rounds[$0] ?? 0) \($0)"
    }
    let seconds = Milliseconds.decimal((report.elapsed.nanoseconds + 50_000_000) / 100_000_000, 1)
    let second =
      "\(used) of \(report.targets.count) targets, \(rounds.joined(separator: " + ")) rounds, order shuffled, "
      + "\(seconds) s"
    let partial =
      switch report.stopReason {
      case .interrupted: ["PARTIAL: interrupted, the unfinished round is left out"]
      case .sampleLimit: ["PARTIAL: stopped at the most samples that a run takes"]
      case .completed, .noTarget: [String]()
      }
    return first + [second] + partial
  }

  /// A line for each target that failed, with the kinds of failure in all blocks.
  private var failures: [String] {
    report.targets.filter { $0.failures > 0 }.flatMap { result in
      let kinds = SampleKind.allCases.filter { $0 != .ok }.compactMap { kind in
        result.counts[kind].map { "\($0) \(kind.label)" }
      }
      let total = result.counts.values.reduce(0, +)
      let text = "\(result.target.id): \(kinds.joined(separator: ", ")) of \(total) requests"
      return TextLayout.hanging("FAILED  ", text).map(colour.red)
    }
  }

  /// What the start-up probe chose, and how that looks now.
  private var picker: [String] {
    guard report.stopReason != .noTarget, let picker = report.picker else { return [] }
    guard let chosen = picker.chosen else {
      return TextLayout.hanging("PICKER  ", "start-up ping found no endpoint to choose")
    }
    let verdict =
      switch (picker.regret, picker.best) {
      case (0?, _): "regret 0, the best by p50"
      case (let regret?, let best?):
        "regret \(Milliseconds(smallest: regret).text(regret)) ms, the best by p50 is \(best)"
      default: "regret unknown: it has no p50"
      }
    return TextLayout.hanging("PICKER  ", "start-up ping chose \(chosen); \(verdict)")
  }

  private func phases(nameWidth: Int) -> [String] {
    let block: Block = (report.rounds[.cold] ?? 0) > 0 ? .cold : report.rankingBlock
    let results = report.ranking
    let counts = results.compactMap { $0.blocks[block]?.response.count }
    guard let least = counts.min(), let most = counts.max() else { return [] }
    let title = "PHASES  median ms, \(block), n=" + (least == most ? "\(most) each" : "\(least) to \(most)")
    guard let bars = PhaseBars(results, block) else {
      return [
        "", title, " a median needs \(Percentiles.needed(for: 50)) samples of a target: raise -n or -z",
      ]
    }
    return ["", title] + bars.lines(nameWidth: nameWidth)
  }
}
