import NetOptTestSupport
import TestTools

/// What a run of the matrix came to so far.
package struct MatrixRecord: Sendable {
  private var results: [Int: CellResult] = [:]
  private let file: String?

  /// - Parameter file: where the table is written between its marks.
  package init(file: String?) { self.file = file }

  /// How many cells broke a rule.
  package var violated: Int { results.values.count { !$0.violations.isEmpty } }

  package var summary: String { "\(results.count) cells, \(violated) with violations" }

  /// Adds a cell's result, and writes the table, when there is a file for it.
  ///
  /// - Parameter place: which cell of the run it is: its row's place in the table.
  /// - Throws: `TestSupportError` when the file has no marks.
  package mutating func add(_ result: CellResult, at place: Int) throws {
    results[place] = result
    guard let file else { return }
    let rows = results.sorted { $0.key < $1.key }.map(\.value.row)
    let table = ([VerdictTable.head] + rows + ["", summary + "."]).joined(separator: "\n")
    guard let text = MarkedText.replacing(TextFile.read(file), with: table) else {
      throw TestSupportError("\(file) has no line \(MarkedText.begin) with \(MarkedText.end) after it")
    }
    try TextFile.write(text, to: file)
  }
}
