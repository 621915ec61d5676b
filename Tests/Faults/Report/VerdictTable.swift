import NetOptCore

/// The table of a run, in Markdown.
package enum VerdictTable {
  /// The names of the columns. "leave" is `CellVerdict.failoverTime`, and "return" is
  /// `CellVerdict.recoveryTime`. Times are in milliseconds.
  package static let head = """
    | fault | request | at once | HTTP | calls | failed | unrepeatable | broken | doubled | p50 | p99 | leave | return \
    | curl calls | failed | p50 | p99 |
    | --- | --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
    """

  /// The row of a cell.
  package static func row(_ cell: Cell, _ verdict: CellVerdict) -> String {
    let netopt = verdict.netopt
    let values = [
      cell.fault.name, cell.traffic.rawValue, "\(cell.concurrency)", "\(cell.version)", "\(netopt.calls)",
      "\(netopt.failed)", "\(verdict.unrepeatable)", "\(verdict.broken)", "\(verdict.doubled)",
      milliseconds(netopt.p50), milliseconds(netopt.p99), milliseconds(verdict.failoverTime),
      milliseconds(verdict.recoveryTime), "\(verdict.curl.calls)", "\(verdict.curl.failed)",
      milliseconds(verdict.curl.p50), milliseconds(verdict.curl.p99),
    ]
    return "| " + values.joined(separator: " | ") + " |"
  }

  /// A duration in milliseconds with one decimal; a dash for `nil`.
  static func milliseconds(_ duration: Duration?) -> String {
    guard let duration else { return "–" }
    let tenths = (duration.nanoseconds + 50_000) / 100_000
    return "\(tenths / 10).\(tenths % 10)"
  }
}
