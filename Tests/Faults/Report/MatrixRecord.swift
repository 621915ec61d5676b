import NetOptTestSupport

/// What a run of the matrix came to so far.
package struct MatrixRecord: Sendable {
  /// How many examples of one kind of violation a cell shows.
  private static let examples = 2

  /// How many cells broke a rule.
  package private(set) var violated = 0
  private var cells = 0
  private var rows: [String] = []
  private let file: String?

  /// - Parameter file: where the table is written between its marks.
  package init(file: String?) { self.file = file }

  /// Adds a cell, and returns what is to be said of its violations.
  package mutating func add(_ cell: Cell, _ verdict: CellVerdict) -> [String] {
    cells += 1
    rows.append(VerdictTable.row(cell, verdict))
    if !verdict.violations.isEmpty { violated += 1 }
    return Dictionary(grouping: verdict.violations) { $0.kind.rawValue }.sorted { $0.key < $1.key }
      .flatMap { kind, all in
        ["VIOLATION \(cell): \(kind), \(all.count) calls"] + all.prefix(Self.examples).map { "  \($0.text)" }
      }
  }

  package var summary: String { "\(cells) cells, \(violated) with violations" }

  /// Writes the table, when there is a file for it.
  ///
  /// - Throws: `TestSupportError` when the file has no marks.
  package func write() throws {
    guard let file else { return }
    let table = ([VerdictTable.head] + rows + ["", summary + "."]).joined(separator: "\n")
    guard let text = MarkedText.replacing(TextFile.read(file), with: table) else {
      throw TestSupportError("\(file) has no line \(MarkedText.begin) with \(MarkedText.end) after it")
    }
    try TextFile.write(text, to: file)
  }
}
