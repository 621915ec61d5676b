import NetOptCore

/// The chart in the report of `get -v`. It has a line with a bar for each leg of the race. If the call
/// succeeded, another line has a bar from the sending of the request to the end of the response. A legend
/// follows.
struct LegChart: Sendable {
  /// A phase of a leg or of the request. The raw value is the character that draws the phase.
  enum Phase: Character, CaseIterable {
    case dns = "D"
    case tcp = "T"
    case tls = "S"
    case send = "R"
    case wait = "W"
    case transfer = "X"

    /// The name of the phase in the legend.
    var name: String {
      switch self {
      case .dns: "dns"
      case .tcp: "tcp"
      case .tls: "tls"
      case .send: "send"
      case .wait: "wait"
      case .transfer: "transfer"
      }
    }
  }

  /// The part of a bar for one phase. `range` is the time of the phase, in offsets from the start of the
  /// call.
  struct Piece {
    let phase: Phase
    let range: Range<Duration>

    /// Creates a piece. If `end` is before `start`, the piece is empty.
    init(_ phase: Phase, from start: Duration, to end: Duration) {
      self.phase = phase
      range = start..<max(start, end)
    }
  }

  /// A line of the chart: the texts of its columns, and the parts of its bar.
  private struct Row {
    /// The address of the leg, "proxy" or "look-up"; "request" for the line of the request.
    let name: String
    /// Where the address came from: "list", or "dns" for every other source (`AddressSource`). Empty for the
    /// request.
    let source: String
    /// The result of the leg, such as "won", with ", pooled" for a pooled connection. Empty for the request.
    let outcome: String
    let pieces: [Piece]
    /// When the leg or the response ended, as an offset from the start of the call.
    let end: Duration
  }

  private let rows: [Row]

  /// Creates the chart of a call.
  ///
  /// - Parameters:
  ///   - route: the route of the call, with the legs of its race.
  ///   - timings: the timings of the call; `nil` when the call failed. The chart then has no line for the
  ///     request.
  init(_ route: RouteReport, _ timings: Timings?) {
    var rows = route.legs.map { Self.row($0, of: route, timings) }
    if let winner = route.winner, let timings { rows.append(Self.request(from: winner.ended, timings)) }
    self.rows = rows
  }

  /// Returns the line of a leg.
  ///
  /// - Parameters:
  ///   - route: the route that contains the leg.
  ///   - timings: the timings of the call, as in `init`. The DNS look-up in them is drawn in the line of the
  ///     leg that won.
  private static func row(_ leg: RouteReport.Leg, of route: RouteReport, _ timings: Timings?) -> Row {
    var pieces: [Piece] = []
    // When the TCP phase ended: TCP was connected, or the leg ended before that.
    let reachedTCP = leg.connected ?? leg.ended
    if leg.address == nil, route.plan.directOff != .proxy {
      pieces.append(Piece(.dns, from: leg.started, to: leg.ended))
    } else if !leg.reused {
      var start = leg.started
      if leg.outcome == .won, let timings, timings.dns > .zero {
        // The route does not tell when the look-up was made. The chart assumes that it ended when the leg
        // sent its first packet, which is when the TCP handshake began.
        let firstPacket = max(start, reachedTCP - timings.connect)
        pieces.append(Piece(.dns, from: max(.zero, firstPacket - timings.dns), to: firstPacket))
        start = firstPacket
      }
      pieces.append(Piece(.tcp, from: start, to: reachedTCP))
      if leg.connected != nil {
        // A leg that won without `secured` did not use TLS. Any other leg may have ended during its TLS
        // handshake.
        let isTLS = leg.secured != nil || leg.outcome != .won
        if isTLS { pieces.append(Piece(.tls, from: reachedTCP, to: leg.secured ?? leg.ended)) }
      }
    }
    return Row(
      name: route.name(of: leg), source: leg.source.rawValue,
      outcome: leg.outcome.rawValue + (leg.reused ? ", pooled" : ""), pieces: pieces, end: leg.ended)
  }

  /// Returns the line of the request.
  ///
  /// - Parameter start: when the winning leg was ready, as an offset from the start of the call.
  private static func request(from start: Duration, _ timings: Timings) -> Row {
    let sent = start + timings.send
    let answered = sent + timings.wait
    let end = answered + timings.transfer
    return Row(
      name: "request", source: "", outcome: "",
      pieces: [
        Piece(.send, from: start, to: sent), Piece(.wait, from: sent, to: answered),
        Piece(.transfer, from: answered, to: end),
      ], end: end)
  }

  /// Returns the lines of the chart.
  ///
  /// - Parameter columns: the width of the terminal in characters.
  func lines(_ columns: Int) -> [String] {
    guard !rows.isEmpty else { return [] }
    let nameWidth = rows.map(\.name.count).max() ?? 0
    let outcomeWidth = max(rows.map(\.outcome.count).max() ?? 0, "OUTCOME".count)
    let timeWidth = 9
    let margin = 1 + nameWidth + 2 + 4 + 2 + outcomeWidth + 2
    let width = max(columns - margin - 1 - timeWidth, 10)
    let end = rows.map(\.end).max() ?? .zero

    let heading =
      " " + Text.left("LEG", nameWidth) + "  FROM  " + Text.left("OUTCOME", outcomeWidth) + "  "
      + Text.left("|0", width - 1) + "|" + " " + Text.right(Text.time(end), timeWidth)
    let bars = rows.map { row in
      " " + Text.left(row.name, nameWidth) + "  " + Text.left(row.source, 4) + "  "
        + Text.left(row.outcome, outcomeWidth) + "  " + Text.left(Self.bar(row.pieces, end, width), width)
        + " "
        + Text.right(Text.time(row.end), timeWidth)
    }
    return [heading] + bars + legend(margin)
  }

  /// Returns the line that explains the characters of the phases in the chart; no line for an empty chart.
  ///
  /// - Parameter margin: the number of characters before the bars.
  private func legend(_ margin: Int) -> [String] {
    let drawn = Set(rows.flatMap { $0.pieces.filter { !$0.range.isEmpty }.map(\.phase) })
    let names = Phase.allCases.filter(drawn.contains).map { "\($0.rawValue) \($0.name)" }
    return names.isEmpty ? [] : [Text.spaces(margin) + names.joined(separator: "  ")]
  }

  /// Draws a bar of at most `width` characters. Each piece that is not empty gets at least one character, so that
  /// short phases are visible, unless there are more pieces than characters.
  ///
  /// - Parameter end: the time at the right edge of the chart, as an offset from the start of the call.
  static func bar(_ pieces: [Piece], _ end: Duration, _ width: Int) -> String {
    var cells: [Character] = []
    let scale = end > .zero ? Double(width) / Double(end.nanoseconds) : 0
    let drawn = pieces.filter { !$0.range.isEmpty }
    for (index, piece) in drawn.enumerated() {
      // Each later piece keeps a character.
      let room = width - (drawn.count - 1 - index)
      let start = min(Int(clamped: (Double(piece.range.lowerBound.nanoseconds) * scale).rounded()), room - 1)
      let stop = min(Int(clamped: (Double(piece.range.upperBound.nanoseconds) * scale).rounded()), room)
      while cells.count < start { cells.append(" ") }
      let count = max(stop - cells.count, 1)
      cells += repeatElement(piece.phase.rawValue, count: count)
    }
    return String(cells.prefix(width))
  }
}

extension RouteReport {
  /// Returns the name of a leg for texts: its address, or "proxy" or "look-up" for a leg without an address.
  func name(of leg: Leg) -> String {
    leg.address?.description ?? (plan.directOff == .proxy ? "proxy" : "look-up")
  }
}
