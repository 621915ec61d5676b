/// The report on a cell: its row of the table, and the rules that it broke.
package struct CellResult: Sendable, Equatable {
  /// The maximum number of examples of each kind of violation.
  private static let examples = 2

  /// The cell's row of the table, in Markdown.
  package let row: String
  /// The lines about violations: for each kind of violation one line with the count, then examples.
  package private(set) var violations: [String] = []

  package init(_ cell: Cell, _ verdict: CellVerdict) {
    row = VerdictTable.row(cell, verdict)
    violations = Dictionary(grouping: verdict.violations) { $0.kind.rawValue }.sorted { $0.key < $1.key }
      .flatMap { kind, all in
        ["VIOLATION \(cell): \(kind), \(all.count) calls"]
          + all.prefix(Self.examples).map {
            // One line each: a message may have several lines.
            "  " + $0.text.replacing("\n", with: " ")
          }
      }
  }

  private init(row: String) { self.row = row }

  package var lines: [String] { [row] + violations }

  /// Parses the results from the output of a run, in their order. The lines before the first row and the
  /// summary are skipped.
  package static func read(_ output: String) -> [CellResult] {
    let head = VerdictTable.head.split(separator: "\n")
    var results: [CellResult] = []
    for line in output.split(separator: "\n") where !head.contains(line) {
      if line.hasPrefix("| ") {
        results.append(CellResult(row: String(line)))
      } else if !results.isEmpty, line.hasPrefix("VIOLATION ") || line.hasPrefix("  ") {
        results[results.count - 1].violations.append(String(line))
      }
    }
    return results
  }
}
