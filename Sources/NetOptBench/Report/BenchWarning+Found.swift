import NetOptCore

extension BenchWarning {
  /// What a run's samples say about how far it can be trusted.
  static func found(in report: BenchReport) -> [BenchWarning] {
    connections(report) + firstSamples(report) + drift(report) + middleboxes(report) + client(report)
  }

  /// Connections that were not used in the way that a block is about: its numbers are then of something else.
  private static func connections(_ report: BenchReport) -> [BenchWarning] {
    report.settings.blocks.flatMap { block in
      report.targets.compactMap { result -> BenchWarning? in
        guard let found = result.blocks[block] else { return nil }
        let id = result.target.id
        let count = found.response.count
        switch block {
        case .warm where found.reused < count:
          return BenchWarning(
            "not-reused", "\(count - found.reused) of \(count) warm samples of \(id) opened a new connection")
        case .cold where found.reused > 0:
          return BenchWarning(
            "reused", "\(found.reused) of \(count) cold samples of \(id) used an open connection")
        default: return nil
        }
      }
    }
  }

  /// The first sample of a block that took longest by far: something was not warm yet.
  private static func firstSamples(_ report: BenchReport) -> [BenchWarning] {
    report.targets.flatMap { result in
      report.settings.blocks.compactMap { block -> BenchWarning? in
        guard let series = result.blocks[block]?.series, series.kinds.first == .ok,
          let median = result.median(block), series.response(0) > 3 * median,
          series.response(0) == series.largest
        else { return nil }
        let time = Milliseconds(smallest: median)
        // Cold requests have no rounds that do not count: what was slow is somewhere else.
        let advice =
          block == .warm
          ? "raise --warmup"
          : "something on the way was not ready (a cache of DNS, a server that slept); the median does not count it"
        return BenchWarning(
          "first-sample-slow",
          "the first \(block.rawValue) sample of \(result.target.id) took \(time.text(series.response(0))) ms, the median is \(time.text(median)): \(advice)"
        )
      }
    }
  }

  /// The network at the end is another one than at the beginning: pairs cancel that out, percentiles do not.
  private static func drift(_ report: BenchReport) -> [BenchWarning] {
    report.settings.blocks.compactMap { block -> BenchWarning? in
      let series = report.targets.compactMap { $0.exclusion == nil ? $0.blocks[block]?.series : nil }
      let rounds = series.map(\.count).min() ?? 0
      guard rounds >= 20 else { return nil }
      // A round's mean, over the targets that did not fail in it, each by its own median.
      let medians = series.map { series in
        let fine = series.fine.map { series.response($0) }.sorted()
        return fine.isEmpty ? 0 : Double(fine[fine.count / 2])
      }
      let levels = (0..<rounds).compactMap { round -> Double? in
        let ratios = zip(series, medians).compactMap { series, median -> Double? in
          series.kinds[round] == .ok && median > 0 ? Double(series.response(round)) / median : nil
        }
        return ratios.isEmpty ? nil : ratios.reduce(0, +) / Double(ratios.count)
      }
      let quarter = levels.count / 4
      guard quarter >= 5 else { return nil }
      func median(_ values: ArraySlice<Double>) -> Double { values.sorted()[values.count / 2] }
      let (first, last) = (median(levels.prefix(quarter)), median(levels.suffix(quarter)))
      let change = last / first - 1
      // The change has to stand out from the noise: half of the round-to-round differences of a quarter are smaller.
      let steps = zip(levels, levels.dropFirst()).map { abs($1 - $0) }
      let noise = median(steps[...]) / Double(quarter).squareRoot() * 3
      guard abs(change) > 0.05, abs(last - first) > noise else { return nil }
      let percent = Int((change * 100).rounded())
      return BenchWarning(
        "drift",
        "the network drifted: \(block.rawValue) requests took \(abs(percent)) % \(percent > 0 ? "longer" : "less") at the end than at the beginning; differences are by round, and not affected"
      )
    }
  }

  /// A handshake of TCP that is far shorter than the one of TLS: somebody near answers for the server.
  private static func middleboxes(_ report: BenchReport) -> [BenchWarning] {
    report.targets.compactMap { result -> BenchWarning? in
      guard result.exclusion == nil, report.settings.request.url.origin.scheme == .https else { return nil }
      var times = result.firstTimings.map { ($0.connect.microseconds, $0.tls.microseconds) }
      // TLS takes one round trip (1.3) or two (1.2), and some milliseconds of computing; a single handshake may meet anything.
      var computing: Int64 = 50_000
      if let cold = result.blocks[.cold], let tcp = cold.phases[.tcp]?.value(.p50),
        let tls = cold.phases[.tls]?.value(.p50)
      {
        times = (tcp, tls)
        computing = 10_000
      }
      guard let (tcp, tls) = times, tcp > 0, tls > 4 * tcp + computing else { return nil }
      let time = Milliseconds(smallest: tcp)
      return BenchWarning(
        "middlebox",
        "TCP to \(result.target.id) is ready after \(time.text(tcp)) ms and TLS takes \(time.text(tls)): somebody on the way may answer for it, and pings by TCP say nothing"
      )
    }
  }

  /// This machine was too busy to measure well.
  private static func client(_ report: BenchReport) -> [BenchWarning] {
    var warnings: [BenchWarning] = []
    let starts = report.openLoopRequests
    if report.lateStarts * 1000 > starts {
      warnings.append(
        BenchWarning(
          "client-late",
          "\(report.lateStarts) of \(starts) requests were sent more than 1 ms after their moment: lower -q, or use another machine"
        ))
    }
    // One loop for each connection; one of them at nine tenths of a core has no time to measure.
    // The one from which an open loop is paced is busy with waiting too; whether that was in time is known.
    let pacing = report.settings.rate == nil ? 0.0 : 1.0
    let loops = Double(report.settings.concurrency) - pacing
    let cores = Double(report.cpuTime.nanoseconds) / max(1, Double(report.elapsed.nanoseconds)) - pacing
    let share = cores / max(loops, 1)
    // The first seconds of a process are busy ones.
    if share > 0.9, loops > 0, report.elapsed >= .seconds(5) {
      warnings.append(
        BenchWarning(
          "client-busy",
          "netopt used \(Int((share * 100).rounded())) % of a core for each connection: it measured itself as well"
        ))
    }
    return warnings
  }
}
