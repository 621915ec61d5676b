import NetOptCore
import NetOptCrypto

/// The binary format in which the disk tier stores an entry without its body. `ByteWriter` encodes numbers
/// and strings.
enum EntryCoding {
  /// The valid times, in milliseconds since 1970: up to the end of the year 9999. A decoded time outside this
  /// range comes from damaged bytes, and arithmetic with it could overflow.
  private static let moments: ClosedRange<Int64> = 0...253_402_300_799_999

  /// The time in milliseconds since 1970, limited to the valid range.
  static func bounded(_ moment: Int64) -> Int64 {
    min(max(moment, moments.lowerBound), moments.upperBound)
  }

  /// Encodes, in this order: status, times of request and response, declared expiry, version, number of
  /// the resource, duration of the fetch, number of header fields, header fields.
  static func head(of entry: CacheEntry) -> [UInt8] {
    var writer = ByteWriter()
    writer.integer(Int64(entry.status))
    writer.integer(bounded(entry.requested))
    writer.integer(bounded(entry.received))
    writer.optional(entry.declaredExpiry.map(bounded))
    writer.optional(entry.resourceVersion)
    writer.optional(entry.resource)
    writer.integer(max(entry.fetchMicroseconds, 0))
    writer.count(entry.fields.count)
    for field in entry.fields {
      writer.text(field.name)
      writer.text(field.value)
    }
    return writer.bytes
  }

  /// Encodes selectors. Each one is its name, a count of 1 with a value or 0 without, and its value if any.
  static func bytes(of selectors: [CacheEntry.Selector]) -> [UInt8] {
    var writer = ByteWriter()
    for selector in selectors {
      writer.text(selector.name)
      writer.count(selector.value == nil ? 0 : 1)
      if let value = selector.value { writer.text(value) }
    }
    return writer.bytes
  }

  /// Decodes selectors; `nil` when the bytes are invalid.
  static func selectors(_ bytes: [UInt8]) -> [CacheEntry.Selector]? {
    var reader = ByteReader(bytes)
    var selectors: [CacheEntry.Selector] = []
    while !reader.isAtEnd {
      guard let name = reader.text(), let hasValue = reader.count() else { return nil }
      guard hasValue == 1 else {
        selectors.append(.init(name: name, value: nil))
        continue
      }
      guard let value = reader.text() else { return nil }
      selectors.append(.init(name: name, value: value))
    }
    return selectors
  }

  /// Makes an entry from its encoded selectors, its encoded head and its body; `nil` when the encoded bytes
  /// are invalid.
  static func entry(
    _ key: CacheKey, selectors: [UInt8], head: [UInt8], body: [UInt8]
  ) -> CacheEntry? {
    var reader = ByteReader(head)
    guard let selectors = Self.selectors(selectors),
      let status = reader.integer(), let requested = reader.integer(), let received = reader.integer(),
      let declaredExpiry = reader.optional(), let resourceVersion = reader.optional(),
      let resource = reader.optional(),
      let fetchMicroseconds = reader.integer(), let count = reader.count(),
      moments.contains(requested), moments.contains(received),
      declaredExpiry.map(moments.contains) ?? true, fetchMicroseconds >= 0
    else { return nil }
    var fields: [HeaderField] = []
    // Each field takes at least eight bytes. The limit keeps a damaged count from reserving much memory.
    fields.reserveCapacity(min(count, head.count / 8))
    for _ in 0..<count {
      guard let name = reader.text(), let value = reader.text() else { return nil }
      fields.append(HeaderField(name, value))
    }
    guard reader.isAtEnd, let status = Int(exactly: status) else { return nil }
    return CacheEntry(
      key: key, selectors: selectors, status: status, fields: HeaderFields(fields), body: body,
      requested: requested, received: received, declaredExpiry: declaredExpiry,
      resourceVersion: resourceVersion, resource: resource, fetchMicroseconds: fetchMicroseconds)
  }

  /// The checksum of an entry: the first 16 bytes of the SHA-256 over the lengths of all parts and the parts.
  /// SHA-256 is fast enough here, because server processors have instructions for it.
  static func checksum(
    owner: [UInt8], text: [UInt8], selectors: [UInt8], head: [UInt8], body: [UInt8]
  ) throws(CryptoError) -> [UInt8] {
    var lengths = ByteWriter()
    for part in [owner, text, selectors, head, body] { lengths.integer(Int64(part.count)) }
    var digest = try Digest(.sha256)
    digest.update(lengths.bytes)
    for part in [owner, text, selectors, head, body] { digest.update(part) }
    return Array(try digest.finish().prefix(16))
  }

  /// The bytes that identify a partition in the database: the SHA-256 of its name, because the name may be a
  /// secret. Empty for the partition without a name.
  static func owner(_ partition: String) throws(CryptoError) -> [UInt8] {
    partition.isEmpty ? [] : try Digest.of(partition, .sha256)
  }
}
