import NetOptCore

/// The report as text, 80 columns wide.
package struct TextReport {
  private let report: BenchReport
  private let colour: TextColour

  /// Makes a renderer.
  package init(_ report: BenchReport, colour: TextColour = TextColour(isOn: false)) {
    self.report = report
    self.colour = colour
  }

  /// The report's text. Each line ends with a line feed.
  package var text: String {
    let table = RankingTable(report, colour)
    var lines = heading + [""]
    if report.targets.isEmpty {
      lines.append("Nothing was measured: there is no target.")
    } else {
      lines += table.lines
      if report.stopReason == .noTarget { lines.append("Nothing was measured: no target could be used.") }
    }
    lines += verdict + failures + picker + objectives + (report.drills ?? []).flatMap(\.lines)
    if let mark = table.mark { lines += TextLayout.hanging("NOTE    ", mark) }
    if let missing = table.missing { lines += TextLayout.hanging("NOTE    ", missing) }
    if let needed { lines += TextLayout.hanging("NOTE    ", needed) }
    if let late { lines += TextLayout.hanging("NOTE    ", late) }
    lines += phases(nameWidth: table.nameWidth)
    return lines.map { $0 + "\n" }.joined()
  }

  /// The first lines: the request, the run's size and duration, and why the run is partial.
  private var heading: [String] {
    let settings = report.settings
    let version = report.version.map { $0 == .http2 ? "h2" : $0 == .http3 ? "h3" : "http/\($0)" } ?? "-"
    let first = TextLayout.ends(
      "netopt bench  \(settings.request.url.shown)",
      "\(settings.request.method) \(version)   run \(report.context.runID)")
    let used = report.targets.count { $0.exclusion == nil }
    let rounds = [Block.warm, .cold].filter(settings.blocks.contains).map {
      "\(report.rounds[$0] ?? 0) \($0)"
    }
    let seconds = Milliseconds.decimal((report.elapsed.nanoseconds + 50_000_000) / 100_000_000, 1)
    let second = TextLayout.wrapped(
      "\(used) of \(report.targets.count) targets, \(rounds.joined(separator: " + ")) rounds, order shuffled, "
        + "\(load)\(seconds) s", at: TextLayout.width)
    let partial =
      switch report.stopReason {
      case .interrupted: ["PARTIAL: interrupted; the unfinished round is excluded"]
      case .sampleLimit: ["PARTIAL: stopped at the maximum number of samples"]
      case .completed, .noTarget: [String]()
      }
    return first + second + partial
  }

  /// The rate, connections and streams of the run, each followed by a comma. Empty for a closed loop with one
  /// request at a time.
  private var load: String {
    let settings = report.settings
    var text = ""
    if let rate = settings.rate { text += "\(rate == rate.rounded() ? "\(Int(rate))" : "\(rate)") req/s, " }
    if settings.concurrency > 1 { text += "\(settings.concurrency) connections, " }
    if settings.streams > 1 { text += "\(settings.streams) streams, " }
    return text
  }

  /// The lines with the conclusion of the run; empty when there is none (`Verdict`).
  private var verdict: [String] {
    Verdict(report).map { TextLayout.hanging("VERDICT ", $0.text) } ?? []
  }

  /// For each objective and target, whether the target meets the objective.
  private var objectives: [String] {
    report.verdicts.flatMap { verdict -> [String] in
      let value =
        verdict.value.map { value in
          verdict.objective.metric == .errors
            ? Milliseconds.decimal(value / 100, 2) + " %" : Milliseconds(smallest: value).text(value) + " ms"
        } ?? verdict.reason ?? "no value"
      let text =
        "\(verdict.isMet ? "met" : "missed") \(verdict.objective.text) by \(verdict.target): \(value)"
      let lines = TextLayout.hanging("SLO     ", text)
      return verdict.isMet ? lines : lines.map(colour.red)
    }
  }

  /// A sentence about the targets that the comparisons could not tell apart. It says how many rounds would
  /// detect a difference of the minimum effect between them (`SignedRankPower.rounds`). `nil` when the run
  /// had so many rounds, or when the comparisons told all targets apart.
  private var needed: String? {
    let settings = report.settings
    let open = report.comparisons.filter { $0.metric == .p50 && !$0.isSignificant && $0.base > 0 }
    let rounds = open.map { comparison in
      SignedRankPower.rounds(
        for: max(settings.minimumEffect, 0.001) * Double(comparison.base),
        halfWidth: (comparison.interval.upperBound - comparison.interval.lowerBound) / 2,
        count: comparison.rounds, confidence: 1 - settings.alpha)
    }
    guard let most = rounds.max(), let now = report.rounds[report.rankingBlock], most > now else {
      return nil
    }
    let percent = Milliseconds.decimal(
      Int64(clamped: (max(settings.minimumEffect, 0.001) * 1000).rounded()), 1)
    return "\(most) rounds would detect a shift of \(percent) % between targets that share a rank"
  }

  /// A sentence with the number of late requests in an open loop and the median delay; `nil` for a closed
  /// loop.
  private var late: String? {
    let lags = report.lags
    guard lags.count > 0 else { return nil }
    let median = lags.value(.p50).map { ", p50 \($0) us" } ?? ""
    return
      "\(report.lateStarts) of \(lags.count) requests were sent more than 1 ms after their scheduled time\(median)"
  }

  /// For each target with failed requests, the number of failures of each kind in all blocks, and the
  /// interval of the share of failures.
  private var failures: [String] {
    report.targets.filter { $0.failures > 0 }.flatMap { result in
      let kinds = SampleKind.allCases.filter { $0 != .ok }.compactMap { kind in
        result.counts[kind].map { "\($0) \(kind.label)" }
      }
      let total = result.counts.values.reduce(0, +)
      let share = WilsonInterval.interval(result.failures, of: total, confidence: 1 - report.settings.alpha)
      func percent(_ value: Double) -> String {
        Milliseconds.decimal(Int64(clamped: (value * 1000).rounded()), 1)
      }
      let text =
        "\(result.target.id): \(kinds.joined(separator: ", ")) of \(total) requests "
        + "[\(percent(share.lowerBound)) \(percent(share.upperBound))] %"
      return TextLayout.hanging("FAILED  ", text).map(colour.red)
    }
  }

  /// Which address the start-up probe chose, and how good the choice was by the measured times.
  private var picker: [String] {
    guard report.stopReason != .noTarget, let picker = report.picker else { return [] }
    guard let chosen = picker.chosen else {
      return TextLayout.hanging("PICKER  ", "start-up ping found no endpoint to choose")
    }
    let verdict =
      switch (picker.regret, picker.best) {
      case (0?, _): "regret 0, the best by p50"
      case (let regret?, _) where picker.isTie:
        "regret \(Milliseconds(smallest: regret).text(regret)) ms, a tie with the best"
      case (let regret?, let best?):
        "regret \(Milliseconds(smallest: regret).text(regret)) ms, the best by p50 is \(best)"
      default: "regret unknown: the address has no p50"
      }
    return TextLayout.hanging("PICKER  ", "start-up ping chose \(chosen); \(verdict)")
  }

  /// The phase bars of the cold block if the run has one, because it contains all phases. Otherwise the bars
  /// of the ranking block.
  private func phases(nameWidth: Int) -> [String] {
    let block: Block = (report.rounds[.cold] ?? 0) > 0 ? .cold : report.rankingBlock
    let results = report.ranking
    let counts = results.compactMap { $0.blocks[block]?.response.count }
    guard let least = counts.min(), let most = counts.max() else { return [] }
    let title = "PHASES  median ms, \(block), n=" + (least == most ? "\(most) each" : "\(least) to \(most)")
    guard let bars = PhaseBars(results, block) else {
      return [
        "", title,
        " a median needs \(report.settings.order.needed(for: .p50)) samples of a target: raise -n or -z",
      ]
    }
    return ["", title] + bars.lines(nameWidth: nameWidth)
  }
}
