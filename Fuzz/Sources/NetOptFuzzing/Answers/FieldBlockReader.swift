import NetOptCore

/// Decodes the field blocks that a server sends on one connection, in order (HPACK, RFC 7541).
struct FieldBlockReader {
  typealias Field = (name: [UInt8], value: [UInt8])

  /// The largest size of the dynamic table that the client allows, in bytes. It is the default of
  /// SETTINGS_HEADER_TABLE_SIZE.
  private static let capacity = 4096
  /// The dynamic table, the newest entry first.
  private var table: [Field] = []
  /// The maximum size of the dynamic table in bytes, which the server may lower and raise up to `capacity`.
  private var limit = capacity
  /// The rest of the block that is being decoded.
  private var bytes: ArraySlice<UInt8> = []

  /// Decodes the fields of a block. Returns `nil` when the block is invalid, which is a connection error.
  mutating func fields(_ block: [UInt8]) -> [Field]? {
    bytes = block[...]
    var fields: [Field] = []
    while let first = bytes.first {
      if first & 0x80 != 0 {
        guard let index = integer(7), let field = entry(index) else { return nil }
        fields.append(field)
      } else if first & 0xe0 == 0x20 {
        // Section 4.2: the server may change the size of the dynamic table only at the beginning of a block.
        guard fields.isEmpty, let size = integer(5), size <= Self.capacity else { return nil }
        limit = size
        evict()
      } else {
        let isIndexed = first & 0x40 != 0
        guard let index = integer(isIndexed ? 6 : 4),
          let name = index == 0 ? text() : entry(index)?.name, let value = text()
        else { return nil }
        fields.append((name, value))
        if isIndexed {
          table.insert((name, value), at: 0)
          evict()
        }
      }
    }
    return fields
  }

  /// Removes the oldest entries until the dynamic table has at most `limit` bytes. The size of an entry is
  /// that of its name and value plus 32 bytes (section 4.1).
  private mutating func evict() {
    var size = table.reduce(0) { $0 + $1.name.count + $1.value.count + 32 }
    while size > limit, let last = table.popLast() { size -= last.name.count + last.value.count + 32 }
  }

  /// Returns the entry with an index (section 2.3.3): the static table comes first, then the dynamic table.
  /// Returns `nil` for an index that does not exist.
  private func entry(_ index: Int) -> Field? {
    if index == 0 { return nil }
    if index <= StaticTable.fields.count { return StaticTable.fields[index - 1] }
    let index = index - StaticTable.fields.count - 1
    return table.indices.contains(index) ? table[index] : nil
  }

  /// Reads an integer (section 5.1); returns `nil` when it is invalid or too large.
  ///
  /// - Parameter bits: how many low bits of the first byte belong to the integer.
  private mutating func integer(_ bits: Int) -> Int? {
    let most = (1 << bits) - 1
    guard let first = bytes.popFirst() else { return nil }
    var value = Int(first) & most
    if value < most { return value }
    var shift = 0
    while let byte = bytes.popFirst() {
      // No valid index, size or length is longer than five such bytes.
      guard shift <= 28 else { return nil }
      value += Int(byte & 0x7f) << shift
      shift += 7
      if byte < 0x80 { return value }
    }
    return nil
  }

  /// Reads a string (section 5.2); returns `nil` when it is invalid.
  private mutating func text() -> [UInt8]? {
    guard let first = bytes.first, let count = integer(7), count <= bytes.count else { return nil }
    defer { bytes = bytes.dropFirst(count) }
    return first & 0x80 == 0 ? Array(bytes.prefix(count)) : HuffmanCode.decoded(bytes.prefix(count))
  }
}

/// The static table: the fields that have an index in every connection (RFC 7541, appendix A).
enum StaticTable {
  /// The fields in order. The first has the index 1.
  static let fields: [FieldBlockReader.Field] = lines.split(separator: "\n").map { line in
    let parts = line.split(separator: " ", maxSplits: 1)
    return (Array(parts[0].utf8), parts.count > 1 ? Array(parts[1].utf8) : [])
  }

  /// Each line has a name, and a value if the entry has one.
  private static let lines = """
    :authority
    :method GET
    :method POST
    :path /
    :path /index.html
    :scheme http
    :scheme https
    :status 200
    :status 204
    :status 206
    :status 304
    :status 400
    :status 404
    :status 500
    accept-charset
    accept-encoding gzip, deflate
    accept-language
    accept-ranges
    accept
    access-control-allow-origin
    age
    allow
    authorization
    cache-control
    content-disposition
    content-encoding
    content-language
    content-length
    content-location
    content-range
    content-type
    cookie
    date
    etag
    expect
    expires
    from
    host
    if-match
    if-modified-since
    if-none-match
    if-range
    if-unmodified-since
    last-modified
    link
    location
    max-forwards
    proxy-authenticate
    proxy-authorization
    range
    referer
    refresh
    retry-after
    server
    set-cookie
    strict-transport-security
    transfer-encoding
    user-agent
    vary
    via
    www-authenticate
    """
}
