package import NetOptCore

/// A log of requests, each with a key and the size of the requested object.
///
/// Each line has a key, or a key and a size, separated by a comma, a semicolon, a tab or spaces, like
/// libCacheSim's text and comma-separated traces. Without a size, every object has the size 1. A first line
/// with column names may say which columns hold keys and sizes; other columns are ignored. Empty lines and
/// lines that begin with # are skipped.
package struct CacheTrace: Sendable {
  /// A request.
  package struct Request: Hashable, Sendable {
    /// A hash of the key.
    package let key: UInt64
    /// The size in bytes.
    package let size: Int
  }

  /// The requests in order.
  package private(set) var requests: [Request] = []
  /// The number of distinct keys.
  package private(set) var keyCount = 0
  /// The total size of all objects in bytes, each with its size at the first request.
  package private(set) var footprint = 0

  private static let keyNames: Set<String> = ["key", "obj_id", "obj", "object", "id", "lbn", "url"]
  private static let sizeNames: Set<String> = ["size", "obj_size", "bytes", "length"]

  /// Reads a trace.
  ///
  /// - Parameters:
  ///   - text: the lines.
  ///   - file: the name of the trace in errors.
  ///   - columns: the columns of the keys and the sizes, counted from 1; `nil` when the trace says so itself.
  ///   - ignoresSizes: whether every object has the size 1.
  /// - Throws: `unreadableFile` with the line and the reason.
  package init(
    _ text: [UInt8], file: String, columns selected: (key: Int, size: Int?)? = nil, ignoresSizes: Bool = false
  ) throws(NetOptError) {
    var sizes: [UInt64: Int] = [:]
    var columns: (key: Int, size: Int?) = selected.map { ($0.key - 1, $0.size.map { $0 - 1 }) } ?? (0, 1)
    var mayBeHeader = true
    var number = 0
    var start = 0
    while start < text.count {
      let end = text[start...].firstIndex(of: 0x0a) ?? text.count
      defer { start = end + 1 }
      number += 1
      let fields = Self.fields(text[start..<end])
      guard let first = fields.first, first.first != 0x23 else { continue }
      if mayBeHeader {
        mayBeHeader = false
        if let selected, Self.isHeader(fields, selected) { continue }
        if selected == nil, let header = try Self.header(fields, file, number) {
          columns = header
          continue
        }
        if selected == nil, fields.count > 2 {
          throw Self.fault(
            file, number, "it has \(fields.count) columns; name the column of the keys with --key-column")
        }
      }
      guard columns.key < fields.count else { throw Self.fault(file, number, "the key is missing") }
      let key = StableHash.fnv1a(fields[columns.key])
      var size = 1
      if !ignoresSizes, let column = columns.size, column < fields.count {
        guard let given = Int(String(decoding: fields[column], as: UTF8.self)), given >= 0 else {
          throw Self.fault(
            file, number,
            "\"\(String(decoding: fields[column].prefix(40), as: UTF8.self))\" is not a size (a whole number from 0)"
          )
        }
        size = given
      }
      if sizes.updateValue(size, forKey: key) == nil {
        let (sum, overflow) = footprint.addingReportingOverflow(size)
        guard !overflow else {
          throw Self.fault(file, number, "the sum of the sizes is too large")
        }
        footprint = sum
      }
      requests.append(Request(key: key, size: size))
    }
    keyCount = sizes.count
    guard !requests.isEmpty else {
      throw NetOptError(
        .unreadableFile, phase: .cache,
        "\(file) has no requests; write a key, or a key and a size, on each line")
    }
  }

  private static func fields(_ line: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
    let hasComma = line.contains { $0 == 0x2c || $0 == 0x3b }
    // A column between commas may be empty; adjacent spaces make no empty columns.
    return line.split(omittingEmptySubsequences: !hasComma) { byte in
      hasComma ? byte == 0x2c || byte == 0x3b : byte == 0x20 || byte == 0x09 || byte == 0x0d
    }.map { field in
      let isBlank = { (byte: UInt8) in byte == 0x20 || byte == 0x09 || byte == 0x0d }
      let rest = field.drop(while: isBlank)
      return rest.prefix(rest.count - rest.reversed().prefix(while: isBlank).count)
    }
  }

  /// The columns that a first line names; `nil` when the line is a request.
  private static func header(
    _ fields: [ArraySlice<UInt8>], _ file: String, _ number: Int
  ) throws(NetOptError) -> (key: Int, size: Int?)? {
    // A longer field is no name of a column. To compare it as a string may take long (`CombiningMarks`).
    let names = fields.map { String(decoding: $0.prefix(64), as: UTF8.self).loweredASCII }
    let size = names.firstIndex { sizeNames.contains($0) }
    guard let key = names.firstIndex(where: { keyNames.contains($0) }) else {
      if size != nil {
        throw fault(file, number, "it names no column for the keys; name it with --key-column")
      }
      return nil
    }
    return (key, size)
  }

  /// Whether a first line has a name in the column of the sizes.
  private static func isHeader(_ fields: [ArraySlice<UInt8>], _ columns: (key: Int, size: Int?)) -> Bool {
    guard let size = columns.size, size - 1 < fields.count else { return false }
    return Int(String(decoding: fields[size - 1], as: UTF8.self)) == nil
  }

  private static func fault(_ file: String, _ line: Int, _ reason: String) -> NetOptError {
    NetOptError(.unreadableFile, phase: .cache, "\(file), line \(line): \(reason)")
  }
}
