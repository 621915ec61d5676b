import FoundationEssentials
import NetOptCore

/// A table in an SQLite file whose pages form cycles of references: 100 KB appear to hold 10^18 rows or more.
///
/// The format: https://www.sqlite.org/fileformat2.html, 1.6.
package enum CircularTable {
  private static let levels = 6

  /// Replaces an existing table by a circular table. The database must be closed or unused, and must have no
  /// write-ahead log.
  ///
  /// - Parameters:
  ///   - path: the database file.
  ///   - root: the number of the table's root page, from `sqlite_master`.
  ///   - row: the content of each row, as a record: the length of its header, types, values.
  package static func write(to path: String, root: Int, row: [UInt8]) throws {
    var file = try FileBytes.read(path, upTo: 1 << 26, as: "a database", in: .cache)
    let size = Int(file[16]) << 8 | Int(file[17])
    let first = file.count / size + 1
    file.replaceSubrange((root - 1) * size..<root * size, with: inner(size, first))
    for level in 1..<levels { file += inner(size, first + level) }
    file += page(size, type: 13, cells: Array(repeating: [UInt8(row.count), 1] + row, count: 100), right: [])
    file.replaceSubrange(28..<32, with: bytes(file.count / size))
    try Data(file).write(to: URL(fileURLWithPath: path))
  }

  /// An interior page whose cells all refer to the same child page.
  private static func inner(_ size: Int, _ child: Int) -> [UInt8] {
    page(
      size, type: 5, cells: Array(repeating: bytes(child) + [1], count: (size - 100) / 7), right: bytes(child)
    )
  }

  private static func page(_ size: Int, type: UInt8, cells: [[UInt8]], right: [UInt8]) -> [UInt8] {
    var page = [UInt8](repeating: 0, count: size)
    var end = size
    var pointers: [UInt8] = []
    for cell in cells {
      page.replaceSubrange(end - cell.count..<end, with: cell)
      end -= cell.count
      pointers += bytes(end).suffix(2)
    }
    let head = [type, 0, 0] + bytes(cells.count).suffix(2) + bytes(end).suffix(2) + [0] + right
    page.replaceSubrange(0..<head.count + pointers.count, with: head + pointers)
    return page
  }

  private static func bytes(_ number: Int) -> [UInt8] {
    stride(from: 24, through: 0, by: -8).map { UInt8(number >> $0 & 255) }
  }
}
