import NetOptCore

/// The text report of `get -v`: the server, the reasons for the route, and a waterfall chart of the times.
struct Waterfall: Sendable {
  /// The maximum number of candidates to show. A host may have thousands in the list.
  private static let mostCandidates = 12

  /// The URL without secrets.
  private let url: String
  private let route: RouteReport
  /// The request and its response; `nil` if the request failed.
  private let exchange: FinishedExchange?
  /// The attempts of the call that the chart does not show. The chart shows the attempt that delivered the
  /// response or failed with the call's error.
  private let otherAttempts: [AttemptReport]

  /// Creates the report of an exchange.
  init(_ exchange: FinishedExchange) {
    url = exchange.url.shown
    route = exchange.route
    otherAttempts = exchange.otherAttempts
    self.exchange = exchange
  }

  /// Creates the report of a request that failed.
  ///
  /// - Parameter url: the URL from the command line, without secrets.
  init(failed url: String, _ route: RouteReport, otherAttempts: [AttemptReport] = []) {
    self.url = url
    self.route = route
    self.otherAttempts = otherAttempts
    exchange = nil
  }

  /// The report as text.
  ///
  /// - Parameter columns: the width of the terminal in characters.
  func text(columns: Int) -> String {
    let blocks = [
      heading(columns) + facts, attempts(columns), candidates(columns),
      LegChart(route, exchange?.timings).lines(columns),
      failures(columns), timings + serverTiming(columns),
    ]
    return Text.lines(Array(blocks.filter { !$0.isEmpty }.joined(separator: [""])))
  }

  /// Returns the first line and an empty line. The first line has the URL, and at the right edge the method,
  /// the HTTP version and the status of the response, or FAILED.
  private func heading(_ columns: Int) -> [String] {
    let end = exchange.map { "\($0.method) HTTP/\($0.head.version) \($0.head.status)" } ?? "FAILED"
    let start = "netopt get  " + Text.printable(url)
    return [Text.left(start, columns - end.count - 2) + "  " + end, ""]
  }

  /// The lines with a label, such as SERVER, TLS and ROUTE. A response without attempts came from the cache.
  private var facts: [String] {
    guard let exchange else { return [fact("ROUTE", routeText)] + race + network }
    guard exchange.attempts > 0 else {
      return cache(exchange) + [fact("BODY", Text.count(exchange.bodyBytes, "byte"))]
    }
    let connection = exchange.reused ? "pooled connection" : "new connection"
    let attempts = exchange.attempts > 1 ? ", \(exchange.attempts) attempts" : ""
    return [
      fact("SERVER", (exchange.remote.map(\.description) ?? "unknown") + ", \(connection)\(attempts)"),
      fact("TLS", security(exchange.tls)), fact("ROUTE", routeText),
    ] + network + cache(exchange) + [
      fact("BODY", Text.count(exchange.bodyBytes, "byte"))
    ]
  }

  /// Returns the line about the cache; no line if no cache was used.
  private func cache(_ exchange: FinishedExchange) -> [String] {
    let status = exchange.cacheStatus
    guard status.outcome != .off else { return [] }
    let storing = status.storing.map { "; \(status.isStored ? "stored" : "not stored"): \($0)" } ?? ""
    return [fact("CACHE", "\(status.outcome.rawValue): \(status.rule)\(storing)")]
  }

  /// The line that says that the call used the result of another call's race; no line for any other call. The
  /// report shows it only for a request that failed.
  private var race: [String] {
    route.isShared
      ? [fact("RACE", "shared: this request used the result of another request's race")] : []
  }

  /// The line about this machine's network; no line unless the network seemed to be down when the plan was
  /// made.
  private var network: [String] {
    guard route.plan.suspectsNetwork else { return [] }
    return [
      fact("NETWORK", "seems down: several addresses and DNS failed together; no address gets a penalty")
    ]
  }

  /// Returns a line with a label.
  private func fact(_ name: String, _ text: String) -> String { Text.left(name, 9) + text }

  /// Returns the TLS version, and whether the certificate was verified.
  private func security(_ tls: TLSReport?) -> String {
    guard let tls else { return "none, plain HTTP" }
    return (tls.version.map { $0 + ", " } ?? "")
      + (tls.verified ? "certificate verified" : "certificate NOT VERIFIED (-k)")
  }

  /// Says in words where the address came from (the list, DNS, the caller), and why.
  private var routeText: String {
    // The plan has one leg. Its address comes from the caller or from the URL.
    if let off = route.plan.directOff, off != .proxy, let address = route.plan.legs[0].address {
      return route.plan.origin.address == address
        ? "to the address in the URL" : "to the pinned address \(address), which is not in the list"
    }
    switch route.plan.directOff {
    case .proxy: return "through the proxy; the list is not used"
    case .requested: return "DNS, as requested; the list is not used"
    case .port:
      let port = route.listedPort.map { "port \($0)" } ?? "another port"
      return "DNS; the list has the host for \(port), not for port \(route.plan.origin.port)"
    case .noList: return "DNS; there is no list, or the host is not in it"
    case .expired: return "DNS; the list has expired"
    case nil: break
    }
    switch route.fallback {
    case .allFailed: return "DNS; no listed address worked for this request"
    case .circuitsOpen: return "DNS; no listed address is usable; some failed or sent Retry-After"
    case .excluded: return "DNS; all listed addresses are excluded"
    case .noAnswerInTime: return "DNS; no listed address was ready in time"
    case nil:
      return route.source == .list ? "direct, from the list, policy \(route.plan.policy.rawValue)" : "DNS"
    }
  }

  /// Returns a table of the other attempts of the call. The chart, which follows the table in the report,
  /// shows the attempt that delivered the response, or else the last attempt.
  private func attempts(_ columns: Int) -> [String] {
    guard !otherAttempts.isEmpty else { return [] }
    let remotes = otherAttempts.map { $0.remote?.description ?? "none" }
    let width = max(remotes.map(\.count).max() ?? 0, "ATTEMPT".count)
    let heading = " #  " + Text.left("ATTEMPT", width) + Text.right("FROM", 12) + Text.right("TO", 12)
    return [heading]
      + zip(otherAttempts, remotes).map { attempt, remote in
        let times = Text.right(Text.time(attempt.started), 12) + Text.right(Text.time(attempt.ended), 12)
        let start = Text.right("\(attempt.number)", 2) + "  " + Text.left(remote, width) + times
        return Text.cut(start + "  " + Text.printable(attempt.summary), to: columns)
      }
  }

  /// Returns a table of the candidates of the plan, the best first, with their scores or the reasons for
  /// their exclusion. The candidates are the list's endpoints for the host.
  private func candidates(_ columns: Int) -> [String] {
    let all = route.plan.candidates
    guard !all.isEmpty else { return [] }
    let shown = all.prefix(Self.mostCandidates)
    let width = max(shown.map(\.address.description.count).max() ?? 0, "CANDIDATE".count)
    var lines = [" #  " + Text.left("CANDIDATE", width) + Text.right("SCORE", 12)]
    for (index, candidate) in shown.enumerated() {
      let mark = candidate.excluded == nil ? "\(index + 1)" : "!"
      let score = candidate.excluded == nil ? candidate.score.map(Text.time) ?? "unknown" : "excluded"
      let start =
        Text.right(mark, 2) + "  " + Text.left(candidate.address.description, width) + Text.right(score, 12)
        + "  "
      // A long reason continues on further lines: its end may say when the endpoint is checked again.
      let reason = Text.wrapped(
        Text.printable(candidate.excluded?.description ?? ""), at: columns - start.count)
      lines.append(Text.cut(start + (reason.first ?? ""), to: columns))
      let indentation = String(repeating: " ", count: start.count)
      lines += reason.dropFirst().map { Text.cut(indentation + $0, to: columns) }
    }
    if all.count > shown.count { lines.append("    and \(all.count - shown.count) more") }
    return lines
  }

  /// Returns the messages of the legs that failed.
  private func failures(_ columns: Int) -> [String] {
    route.legs.flatMap { leg -> [String] in
      guard let message = leg.failure?.message else { return [] }
      let name = route.name(of: leg)
      let text = message.contains(name) ? message : "\(name): \(message)"
      let lines = Text.wrapped(Text.printable(text), at: columns - 4)
      return lines.enumerated().map { ($0 == 0 ? " " : "    ") + $1 }
    }
  }

  /// A table of the durations of the phases in milliseconds; empty if the request failed.
  private var timings: [String] {
    guard let timings = exchange?.timings else { return [] }
    let cells = [
      ("queue", timings.queue), ("dns", timings.dns), ("tcp", timings.connect), ("tls", timings.tls),
      ("send", timings.send), ("wait", timings.wait), ("transfer", timings.transfer),
      ("total", timings.total),
    ].map { ($0, Text.milliseconds($1)) }
    let widths = cells.map { max($0.count, $1.count, 6) + 2 }
    return [
      "TIME ms " + zip(cells, widths).map { Text.right($0.0, $1) }.joined(),
      "        " + zip(cells, widths).map { Text.right($0.1, $1) }.joined(),
    ]
  }
}

extension Waterfall {
  /// Returns a line for each metric of the server, with a heading. Usually these times are parts of `wait`, but
  /// a server may report any times. The durations are below the column of `wait`, unless a phase takes 10 s or
  /// more.
  private func serverTiming(_ columns: Int) -> [String] {
    guard let metrics = exchange?.serverTiming, !metrics.isEmpty else { return [] }
    let width = min(max(metrics.map(\.name.count).max() ?? 0, 10), 28)
    return ["  reported by the server (Server-Timing):"]
      + metrics.map { metric in
        let duration = metric.duration.map(Text.milliseconds) ?? ""
        let start = "    " + Text.left(metric.name, width) + Text.right(duration, 52 - width)
        return Text.cut(start + "  " + Text.printable(metric.text ?? ""), to: columns)
      }
  }
}

extension AttemptReport {
  /// The outcome of the attempt in words. The text of a hedge begins with "hedge: ".
  fileprivate var summary: String {
    let end =
      switch outcome {
      case .answered(let status): "answered \(status)"
      case .failed(let error): error.message
      case .overtaken: "another attempt was answered first"
      }
    return reason == .hedge ? "hedge: \(end)" : end
  }
}
