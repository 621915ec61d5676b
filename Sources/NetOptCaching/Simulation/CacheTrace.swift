package import NetOptCore

/// A trace: a log of requests, each with a key and the size of the requested object.
///
/// In the text form, each line has a key, or a key and a size, separated by a comma, a semicolon, a tab or
/// spaces. The text and the comma-separated traces of libCacheSim have this form. An object without a size
/// has the size 1. The first line may have the names of the columns. They tell which columns have the keys
/// and the sizes; other columns are ignored. Empty lines and lines that begin with # are skipped.
package struct CacheTrace: Sendable {
  /// A request.
  package struct Request: Hashable, Sendable {
    /// A 64-bit hash of the key in the trace.
    package let key: UInt64
    /// The size of the requested object, in bytes.
    package let size: Int
  }

  /// The requests, in the order of the trace.
  package private(set) var requests: [Request] = []
  /// The number of distinct keys.
  package private(set) var keyCount = 0
  /// The total size of all objects in bytes. Each object counts once, with its size in the first request.
  package private(set) var footprint = 0

  /// The lowercase names of columns with keys.
  private static let keyNames: Set<String> = ["key", "obj_id", "obj", "object", "id", "lbn", "url"]
  /// The lowercase names of columns with sizes.
  private static let sizeNames: Set<String> = ["size", "obj_size", "bytes", "length"]

  /// Reads a trace.
  ///
  /// - Parameters:
  ///   - text: the lines.
  ///   - file: the name of the trace for error messages.
  ///   - columns: the columns of the keys and the sizes, counted from 1. Without a column of sizes, every
  ///     object has the size 1. If `columns` is `nil`, the names in the first line decide; without names,
  ///     keys are in column 1 and sizes in column 2.
  ///   - ignoresSizes: whether every object counts with the size 1.
  /// - Throws: `unreadableFile` with the number of the line and the reason.
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

  /// Splits a line into its columns, without the white space around them. A line with a comma or semicolon is
  /// split there; any other line is split at white space.
  private static func fields(_ line: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
    let hasComma = line.contains { $0 == 0x2c || $0 == 0x3b }
    // Two commas in a row have an empty column between them. Two spaces in a row count as one.
    return line.split(omittingEmptySubsequences: !hasComma) { byte in
      hasComma ? byte == 0x2c || byte == 0x3b : byte == 0x20 || byte == 0x09 || byte == 0x0d
    }.map { field in
      let isBlank = { (byte: UInt8) in byte == 0x20 || byte == 0x09 || byte == 0x0d }
      let rest = field.drop(while: isBlank)
      return rest.prefix(rest.count - rest.reversed().prefix(while: isBlank).count)
    }
  }

  /// The columns of keys and sizes, counted from 0, if the first line has names of columns; `nil` if the line
  /// is a request.
  private static func header(
    _ fields: [ArraySlice<UInt8>], _ file: String, _ number: Int
  ) throws(NetOptError) -> (key: Int, size: Int?)? {
    // Compares at most 64 bytes, because no name of a column is longer, and because the comparison of a long
    // string may take long (`SlowText`).
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

  /// Whether the first line has names of columns: its text in the column of the sizes is not a number. The
  /// columns are counted from 1.
  private static func isHeader(_ fields: [ArraySlice<UInt8>], _ columns: (key: Int, size: Int?)) -> Bool {
    guard let size = columns.size, size - 1 < fields.count else { return false }
    return Int(String(decoding: fields[size - 1], as: UTF8.self)) == nil
  }

  private static func fault(_ file: String, _ line: Int, _ reason: String) -> NetOptError {
    NetOptError(.unreadableFile, phase: .cache, "\(file), line \(line): \(reason)")
  }
}
