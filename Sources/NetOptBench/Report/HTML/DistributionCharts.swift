/// Two charts of the distribution of response times, with one line for each target. The first chart shows the
/// share of requests below each time. The second chart shows the time of each percentile, with the upper
/// percentiles spread out.
struct DistributionCharts {
  /// The number of points of a line for a target with more values than this. The points are evenly spread
  /// over the values. A line for a target with fewer values has one point for each value. The lines of the
  /// second chart have further points for the highest ranks.
  private static let points = 240

  private let targets: ChartedTargets
  /// The block whose requests the charts show: the block that determines the ranking
  /// (`BenchReport.rankingBlock`).
  private let block: Block

  init(_ report: BenchReport, _ targets: ChartedTargets) {
    self.targets = targets
    block = report.rankingBlock
  }

  /// Both charts with their legend as HTML, or a sentence when there are too few samples.
  var markup: String {
    let sorted = targets.all.compactMap { target, colour -> (values: [Double], total: Int, colour: Int)? in
      guard let found = target.blocks[block], found.response.count > 1 else { return nil }
      let values = found.series.successes.map { Double(found.series.response($0)) / 1000 }.sorted()
      return (values, found.response.total, colour)
    }
    guard let low = sorted.compactMap(\.values.first).min(),
      let high = sorted.compactMap(\.values.last).max(),
      let most = sorted.map(\.total).max()
    else { return Markup.paragraph("There are too few samples for a distribution.") }
    return targets.legend + shares(sorted, low, high) + percentiles(sorted, high, most)
  }

  /// The chart of the share of requests below each time.
  ///
  /// - Parameters:
  ///   - sorted: for each target, the response times of its successful requests in ascending order, in
  ///     milliseconds; the number of these requests plus the timeouts; and the index of its colour.
  ///   - low: the smallest of all times, in milliseconds.
  ///   - high: the largest of all times, in milliseconds.
  private func shares(_ sorted: [(values: [Double], total: Int, colour: Int)], _ low: Double, _ high: Double)
    -> String
  {
    var chart = Chart(
      "ecdf", title: "Share of \(block.rawValue) requests by response time",
      description:
        "The share of \(block.rawValue) requests with a response within each time, from \(Markup.number(low)) to \(Markup.number(high)) ms; lines further to the left are faster. Requests that timed out keep a line from reaching 100 %."
        + targets.note,
      x: Scale(.logarithmic, low, high), "response time, ms (logarithmic)", y: Scale(.linear, 0, 100),
      "share of requests, %")
    for (values, total, colour) in sorted {
      let line = Self.ranks(values.count).map { rank in (values[rank - 1], 100 * Double(rank) / Double(total))
      }
      chart.line([(values[0], 0)] + line, class: "c\(colour)")
    }
    return chart.markup
  }

  /// The chart of the time of each percentile.
  ///
  /// - Parameters:
  ///   - sorted: the data of the targets, as in `shares`.
  ///   - high: the largest of all times, in milliseconds.
  ///   - most: the largest number of requests of one target, timeouts included.
  private func percentiles(
    _ sorted: [(values: [Double], total: Int, colour: Int)], _ high: Double, _ most: Int
  ) -> String {
    var chart = Chart(
      "percentiles", title: "Response time of \(block.rawValue) requests by percentile",
      description:
        "The response time that each share of \(block.rawValue) requests stayed within. On the axis, the last tenth, hundredth and thousandth of requests take as much space as the first nine tenths. The longest request took \(Markup.number(high)) ms.",
      x: Scale(.tail, 0, 1 - 1 / Double(most + 1)), "share of requests, % (scaled by the remaining share)",
      y: Scale(.linear, 0, high), "response time, ms")
    for (values, total, colour) in sorted {
      chart.line(
        Self.ranks(values.count, upper: true).map { rank in
          ((Double(rank) - 0.5) / Double(total), values[rank - 1])
        },
        class: "c\(colour)")
    }
    return chart.markup
  }

  /// Selects the ranks at which a line gets a point: all ranks from 1 to `count` if there are at most
  /// `points`, otherwise `points` ranks that are evenly spread.
  ///
  /// - Parameter upper: whether to add further ranks in the upper half, the denser the closer to the highest
  ///   rank.
  /// - Returns: the ranks in ascending order.
  private static func ranks(_ count: Int, upper: Bool = false) -> [Int] {
    if count <= points { return Array(1...count) }
    var ranks = (0..<points).map { 1 + $0 * (count - 1) / (points - 1) }
    if upper {
      // Adds 8 ranks each time the distance to the highest rank halves.
      var left = count / 2
      while left > 0 {
        ranks += (0..<8).map { count - left + $0 * left / 16 }
        left /= 2
      }
      ranks.append(count)
    }
    return Set(ranks).sorted()
  }
}
