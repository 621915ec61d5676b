import NetOptCore

/// The result of a soak.
package struct SoakReport: Sendable, CustomStringConvertible {
  /// The calls of one kind of request.
  struct Row: Sendable {
    var calls: [Call] = []
    /// The number of failed calls with the excuse `Excuse.unrepeatable`.
    var unrepeatable = 0
    /// The number of failed calls with the excuse `Excuse.broken`.
    var broken = 0
    /// The number of requests that servers processed more than once although they must not be repeated.
    var doubled = 0
  }

  /// The maximum number of examples of each kind of violation.
  private static let examples = 5

  var rows: [Traffic: Row] = [:]
  /// The figures of the requests that may be repeated and that began in a second in which a fault was active.
  /// Requests with a broken response (`Excuse.broken`) do not count.
  package internal(set) var inFaults = CellVerdict.Figures()
  /// The figures of the requests that may be repeated and that began in the other seconds. Requests with a
  /// broken response do not count here either.
  package internal(set) var elsewhere = CellVerdict.Figures()
  package private(set) var violations: [CellVerdict.Violation] = []

  mutating func add(_ kind: CellVerdict.Violation.Kind, _ text: String) {
    violations.append(CellVerdict.Violation(kind: kind, text: text))
  }

  package var description: String {
    let head = "request       calls  failed  unrepeatable  broken  doubled      p50 ms      p99 ms"
    let table = Traffic.allCases.compactMap { traffic -> String? in
      guard let row = rows[traffic] else { return nil }
      let figures = CellVerdict.Figures(row.calls)
      let name = traffic.rawValue + String(repeating: " ", count: max(0, 11 - traffic.rawValue.count))
      let columns: [(String, Int)] = [
        ("\(figures.calls)", 8), ("\(figures.failed)", 8), ("\(row.unrepeatable)", 14), ("\(row.broken)", 8),
        ("\(row.doubled)", 9), (VerdictTable.milliseconds(figures.p50), 12),
        (VerdictTable.milliseconds(figures.p99), 12),
      ]
      return name + columns.map { String(repeating: " ", count: max(0, $1 - $0.count)) + $0 }.joined()
    }
    let kinds = Dictionary(grouping: violations) { $0.kind.rawValue }.sorted { $0.key < $1.key }
    let wrong = kinds.flatMap { kind, all in
      ["VIOLATION \(kind): \(all.count)"] + all.prefix(Self.examples).map { "  \($0.text)" }
    }
    return
      ([head] + table + [
        Self.line("with", inFaults), Self.line("without", elsewhere), "\(violations.count) violations",
      ] + wrong).joined(separator: "\n")
  }

  private static func line(_ word: String, _ figures: CellVerdict.Figures) -> String {
    "seconds \(word) a fault: \(figures.calls) requests that may be repeated, p50 "
      + "\(VerdictTable.milliseconds(figures.p50)) ms, p99 \(VerdictTable.milliseconds(figures.p99)) ms"
  }
}
