import NetOptCore

extension BenchWarning {
  /// Finds the reasons why the samples of a run may be unreliable, and makes a warning for each.
  static func found(in report: BenchReport) -> [BenchWarning] {
    connections(report) + firstSamples(report) + drift(report) + middleboxes(report) + client(report)
  }

  /// Warns when requests of the warm block opened new connections, or when requests of the cold block reused
  /// connections. Such a block does not measure what its name says.
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

  /// Warns when the first sample of a target in a block was the slowest and took more than three times the
  /// median. Something on the path was then not ready for the first request.
  private static func firstSamples(_ report: BenchReport) -> [BenchWarning] {
    report.targets.flatMap { result in
      report.settings.blocks.compactMap { block -> BenchWarning? in
        guard let series = result.blocks[block]?.series, series.kinds.first == .ok,
          let median = result.median(block), series.response(0) > 3 * median,
          series.response(0) == series.largest
        else { return nil }
        let time = Milliseconds(smallest: median)
        // Cold blocks have no warm-up rounds, so the cause is elsewhere.
        let advice =
          block == .warm
          ? "raise --warmup"
          : "a component on the path was not ready (for example a DNS cache or an idle server); the median ignores this sample"
        return BenchWarning(
          "first-sample-slow",
          "the first \(block.rawValue) sample of \(result.target.id) took \(time.text(series.response(0))) ms, the median is \(time.text(median)): \(advice)"
        )
      }
    }
  }

  /// Warns when the response times of all targets together are longer or shorter at the end of a block than
  /// at its beginning, because the network changed. The change affects percentiles. It does not affect the
  /// differences between targets, which are computed within each round.
  private static func drift(_ report: BenchReport) -> [BenchWarning] {
    report.settings.blocks.compactMap { block -> BenchWarning? in
      let series = report.targets.compactMap { $0.exclusion == nil ? $0.blocks[block]?.series : nil }
      let rounds = series.map(\.count).min() ?? 0
      guard rounds >= 20 else { return nil }
      // The level of a round: the mean, over the targets that succeeded in the round, of the response time
      // divided by the target's median.
      let medians = series.map { series in
        let responses = series.successes.map { series.response($0) }.sorted()
        return responses.isEmpty ? 0 : Double(responses[responses.count / 2])
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
      // The change must exceed the noise: three times the median difference between consecutive rounds,
      // divided by the square root of the number of rounds in a quarter.
      let steps = zip(levels, levels.dropFirst()).map { abs($1 - $0) }
      let noise = median(steps[...]) / Double(quarter).squareRoot() * 3
      guard abs(change) > 0.05, abs(last - first) > noise else { return nil }
      let percent = Int(clamped: (change * 100).rounded())
      return BenchWarning(
        "drift",
        "the network drifted: \(block.rawValue) requests took \(abs(percent)) % \(percent > 0 ? "longer" : "less") at the end than at the beginning; the differences are not affected, because bench computes them per round"
      )
    }
  }

  /// Warns when the TCP handshake is far shorter than the TLS handshake: a device near this machine may
  /// answer TCP in place of the server.
  private static func middleboxes(_ report: BenchReport) -> [BenchWarning] {
    report.targets.compactMap { result -> BenchWarning? in
      guard result.exclusion == nil, report.settings.request.url.origin.scheme == .https else { return nil }
      var times = result.firstTimings.map { ($0.connect.microseconds, $0.tls.microseconds) }
      // A TLS handshake takes one round trip (1.3) or two (1.2), and some milliseconds of computation: the
      // allowance. The time of the first request alone varies more than a median, so it gets a larger
      // allowance: 50 ms instead of 10 ms.
      var allowance: Int64 = 50_000
      if let cold = result.blocks[.cold], let tcp = cold.phases[.tcp]?.value(.p50),
        let tls = cold.phases[.tls]?.value(.p50)
      {
        times = (tcp, tls)
        allowance = 10_000
      }
      guard let (tcp, tls) = times, tcp > 0, tls > 4 * tcp + allowance else { return nil }
      let time = Milliseconds(smallest: tcp)
      return BenchWarning(
        "middlebox",
        "TCP to \(result.target.id) takes \(time.text(tcp)) ms and TLS takes \(time.text(tls)) ms: a device on the path may answer TCP for the server, so TCP probes do not measure the server"
      )
    }
  }

  /// Warns when netopt itself made the times unreliable: it started more than one request in a thousand late,
  /// or its event loops used nearly all of their processor cores.
  private static func client(_ report: BenchReport) -> [BenchWarning] {
    var warnings: [BenchWarning] = []
    let starts = report.openLoopRequests
    if report.lateStarts * 1000 > starts {
      warnings.append(
        BenchWarning(
          "client-late",
          "\(report.lateStarts) of \(starts) requests were sent more than 1 ms after their scheduled time: lower -q, or use another machine"
        ))
    }
    // Each connection has its own event loop. An event loop that uses nine tenths of a core is too busy to
    // measure well. In an open-loop run, one event loop also starts the requests, and keeps a core busy while
    // it waits for their scheduled moments. So the calculation leaves out one event loop and one core.
    // `lateStarts` shows whether this event loop was too busy.
    let pacing = report.settings.rate == nil ? 0.0 : 1.0
    let loops = Double(report.settings.concurrency) - pacing
    let cores = Double(report.cpuTime.nanoseconds) / max(1, Double(report.elapsed.nanoseconds)) - pacing
    let share = cores / max(loops, 1)
    // A process is always busy in its first seconds.
    if share > 0.9, loops > 0, report.elapsed >= .seconds(5) {
      warnings.append(
        BenchWarning(
          "client-busy",
          "netopt used \(Int(clamped: (share * 100).rounded())) % of a core for each connection: the times include the load of netopt itself"
        ))
    }
    return warnings
  }
}
