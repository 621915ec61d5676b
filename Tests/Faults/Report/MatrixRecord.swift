import NetOptTestSupport
import TestTools

/// The results of a run of the matrix so far.
package struct MatrixRecord: Sendable {
  /// The results of the cells that have ended, by the index of the cell in the run.
  private var results: [Int: CellResult] = [:]
  /// The path of the file that gets the table; `nil` for no file.
  private let file: String?

  /// - Parameter file: the path of the file that gets the table, between the marks of `MarkedText`; `nil` for
  ///   no file.
  package init(file: String?) { self.file = file }

  /// The number of cells that broke a rule.
  package var violated: Int { results.values.count { !$0.violations.isEmpty } }

  package var summary: String { "\(results.count) cells, \(violated) with violations" }

  /// Adds a cell's result, and writes the table if there is a file for it.
  ///
  /// - Parameter index: the index of the cell in the run, which is also the position of its row in the table.
  /// - Throws: `TestSupportError` when the file has no marks.
  package mutating func add(_ result: CellResult, at index: Int) throws {
    results[index] = result
    guard let file else { return }
    let rows = results.sorted { $0.key < $1.key }.map(\.value.row)
    let table = ([VerdictTable.head] + rows + ["", summary + "."]).joined(separator: "\n")
    guard let text = MarkedText.replacing(TextFile.read(file), with: table) else {
      throw TestSupportError("\(file) has no line \(MarkedText.begin) with \(MarkedText.end) after it")
    }
    try TextFile.write(text, to: file)
  }
}
