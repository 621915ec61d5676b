/// Two charts whose horizontal axis is the number of the round. For long runs, a chart groups neighbouring
/// rounds into bins. One of the charts also draws the range of each bin.
struct RoundCharts {
  /// The maximum number of bins in a line.
  private static let bins = 240
  /// The minimum number of crosses that mark the failures of a target when not every failure gets a cross. Up
  /// to 199 failures all get one. Of more failures, only every n-th gets one, so that 100 to 150 crosses
  /// remain.
  private static let crosses = 100

  private let report: BenchReport
  private let targets: ChartedTargets
  /// The block whose requests the charts show (`BenchReport.rankingBlock`).
  private let block: Block

  init(_ report: BenchReport, _ targets: ChartedTargets) {
    self.report = report
    self.targets = targets
    block = report.rankingBlock
  }

  /// The chart of the response times by round, with crosses for the failures, as HTML. A sentence when there
  /// are too few rounds.
  var overTime: String {
    let lines = targets.all.compactMap { target, colour -> (SampleSeries, [Bin], String, Int)? in
      guard let series = target.blocks[block]?.series, series.count > 1 else { return nil }
      let bins = Self.binned(series.count) { index in
        series.kinds[index] == .ok ? Double(series.response(index)) / 1000 : nil
      }
      return (series, bins, target.target.id, colour)
    }
    guard let rounds = lines.map(\.0.count).max() else {
      return Markup.paragraph("There are too few rounds.")
    }
    let high = lines.flatMap(\.1).map(\.high).max() ?? 1
    let failures = lines.reduce(0) { sum, line in sum + line.0.kinds.count { $0 != .ok } }
    var chart = Chart(
      "over-time", title: "Response time of \(block.rawValue) requests by round",
      description:
        "The response times over \(rounds) rounds: medians of neighbouring rounds as lines, their range as areas. "
        + (failures == 0
          ? "No request failed." : "\(failures) requests failed; crosses at the top mark them.")
        + targets.note,
      x: Scale(.linear, 0, Double(rounds)), "round", y: Scale(.linear, 0, high), "response time, ms")
    for (_, bins, _, colour) in lines {
      chart.band(bins.map { ($0.middle, $0.low, $0.high) }, class: "c\(colour)")
      chart.line(bins.map { ($0.middle, $0.median) }, class: "c\(colour)")
    }
    for (series, _, id, colour) in lines {
      let failed = series.kinds.indices.filter { series.kinds[$0] != .ok }
      let step = max(1, failed.count / Self.crosses)
      for index in stride(from: 0, to: failed.count, by: step) {
        let round = failed[index]
        chart.cross(
          chart.xPosition(of: Double(round) + 0.5), 8 + Double(colour) * 3, class: "c\(colour)",
          "\(id), round \(round + 1): \(series.kinds[round].label)")
      }
    }
    return targets.legend + chart.markup
  }

  /// The chart of the differences between each target and the reference by round, as HTML. A horizontal area
  /// shows the confidence interval of a target's shift (`Comparison.shift`). A sentence when there is nothing
  /// to compare.
  var differences: String {
    guard let reference = report.reference, let base = reference.blocks[block]?.series else {
      return Markup.paragraph("The reference was not measured.")
    }
    let lines = targets.all.compactMap { target, colour -> ([Bin], Comparison?, Int)? in
      guard target.target != reference.target, let series = target.blocks[block]?.series else { return nil }
      let bins = Self.binned(min(series.count, base.count)) { index in
        series.kinds[index] == .ok && base.kinds[index] == .ok
          ? Double(series.response(index) - base.response(index)) / 1000 : nil
      }
      return bins.count < 2 ? nil : (bins, report.comparison(of: target.target.id), colour)
    }
    guard let rounds = lines.compactMap(\.0.last?.middle).max() else {
      return Markup.paragraph("No other target was measured in the same rounds.")
    }
    let medians = lines.flatMap(\.0).map(\.median)
    let found = lines.compactMap(\.1).map { comparison in
      "\(comparison.a) \(Markup.number(comparison.shift / 1000)) ms (\(comparison.isSignificant ? "significant" : "not significant"))"
    }
    let name = reference.target.id
    var chart = Chart(
      "differences", title: "Difference to \(name) by round",
      description:
        "How much longer each target took than \(name) in the same round, as medians of neighbouring rounds; below 0, the target was faster. The areas are the intervals of the shifts: \(found.joined(separator: ", "))."
        + targets.note,
      x: Scale(.linear, 0, rounds), "round",
      y: Scale(.linear, min(0, medians.min() ?? 0), max(0, medians.max() ?? 0)),
      "difference to \(name), ms")
    for (bins, comparison, colour) in lines {
      if let interval = comparison?.interval {
        let (low, high) = (interval.lowerBound / 1000, interval.upperBound / 1000)
        chart.band([(0, low, high), (rounds, low, high)], class: "c\(colour)")
      }
      chart.line(bins.map { ($0.middle, $0.median) }, class: "c\(colour)")
    }
    chart.level(0, class: "zero")
    return targets.legend + chart.markup
  }

  /// The summary of the values in a bin, which is a group of neighbouring rounds. The values are in
  /// milliseconds.
  private struct Bin {
    /// The middle of the bin on the axis of rounds. Round n, counted from 0, takes the axis from n to n + 1.
    let middle: Double
    /// The median of the values.
    let median: Double
    /// The smallest value.
    let low: Double
    /// The largest value.
    let high: Double
  }

  /// Groups rounds into at most `bins` bins. All bins have the same number of rounds, except the last one,
  /// which may have fewer. Leaves out bins without a value.
  ///
  /// - Parameters:
  ///   - count: the number of rounds.
  ///   - value: returns the value of a round, given by its number from 0; `nil` for a round without a value.
  private static func binned(_ count: Int, _ value: (Int) -> Double?) -> [Bin] {
    let width = max(1, (count + bins - 1) / bins)
    return stride(from: 0, to: count, by: width).compactMap { start in
      let end = min(start + width, count)
      let values = (start..<end).compactMap(value).sorted()
      guard let low = values.first, let high = values.last else { return nil }
      return Bin(
        middle: Double(start + end) / 2, median: values[Percentile.p50.nearestRank(of: values.count) - 1],
        low: low,
        high: high)
    }
  }
}
