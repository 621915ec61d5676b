/// What is said of a cell: its row of the table, and the rules that it broke.
package struct CellResult: Sendable, Equatable {
  /// How many examples of one kind of violation are shown.
  private static let examples = 2

  package let row: String
  /// A line for each kind of violation, and examples of it below.
  package private(set) var violations: [String] = []

  package init(_ cell: Cell, _ verdict: CellVerdict) {
    row = VerdictTable.row(cell, verdict)
    violations = Dictionary(grouping: verdict.violations) { $0.kind.rawValue }.sorted { $0.key < $1.key }
      .flatMap { kind, all in
        ["VIOLATION \(cell): \(kind), \(all.count) calls"]
          + all.prefix(Self.examples).map {
            // One line each: a message may have several.
            "  " + $0.text.replacing("\n", with: " ")
          }
      }
  }

  private init(row: String) { self.row = row }

  package var lines: [String] { [row] + violations }

  /// The results in what a run printed, in its order. What comes before the first row, and the summary, are none.
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
