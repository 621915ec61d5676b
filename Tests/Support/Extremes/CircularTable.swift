import FoundationEssentials
import NetOptCore

/// Makes a table in an SQLite file appear to hold 10^18 rows or more, although the file has only about 100
/// KB. Each interior page of the table's b-tree refers to its one child page hundreds of times. The leaf page
/// below the last level has 100 rows. A reader that walks the tree reaches this leaf over and over.
///
/// The file format: https://www.sqlite.org/fileformat2.html, section 1.6.
package enum CircularTable {
  /// The number of interior pages, one on each level of the tree. The root page is the first.
  private static let levels = 6

  /// Replaces the root page of a table and appends the other pages. The database must be closed or unused,
  /// and must have no write-ahead log.
  ///
  /// - Parameters:
  ///   - path: the database file.
  ///   - root: the number of the table's root page, from `sqlite_master`.
  ///   - row: the content of each row, in SQLite's record format: the length of the header, types, values.
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

  /// Makes an interior page whose cells all refer to one child page. `size` is the page size in bytes, and
  /// `child` the number of the child page.
  private static func inner(_ size: Int, _ child: Int) -> [UInt8] {
    page(
      size, type: 5, cells: Array(repeating: bytes(child) + [1], count: (size - 100) / 7), right: bytes(child)
    )
  }

  /// Makes a b-tree page: header, pointers to the cells, and the cells at the end of the page.
  ///
  /// - Parameters:
  ///   - size: the page size in bytes.
  ///   - type: 5 for an interior page of a table, 13 for a leaf page.
  ///   - right: the number of the child page after the last cell, as 4 bytes; empty for a leaf page.
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

  /// The 4 bytes of a number, the most significant byte first.
  private static func bytes(_ number: Int) -> [UInt8] {
    stride(from: 24, through: 0, by: -8).map { UInt8(number >> $0 & 255) }
  }
}
