import NetOptCore
package import NetOptCrypto

/// The key of a stored response: a partition, and a text with its MD5.
///
/// The stores use the MD5 only to find entries quickly. Keys are equal only if their texts and partitions are
/// equal. So two texts with the same MD5 are different keys, and neither gets the entries of the other.
package struct CacheKey: Hashable, Sendable {
  /// The partition of the cache that the entry belongs to. `RequestKey.partition` makes it from a name that
  /// the caller chooses and from the request's credentials. A request never gets an entry of another
  /// partition.
  package let partition: String
  /// The API's name, a NUL, and the canonical parameters (`init(api:parameters:partition:)`).
  package let text: String
  /// The MD5 of `text`, 16 bytes.
  package let digest: MD5Digest
  /// The hash of the key for the tables of this process. It depends on the digest, on the partition and on a
  /// random seed of the process. So an attacker cannot choose keys that all have the same hash.
  package let tableHash: UInt64

  /// Makes a key.
  ///
  /// - Parameters:
  ///   - api: the declared name of the API, which contains its service and environment; without such a name,
  ///     method, origin and path.
  ///   - parameters: the canonical parameters.
  ///   - partition: the partition of the entry.
  /// - Throws: `CryptoError` when this machine's libcrypto has no MD5.
  package init(api: String, parameters: String, partition: String = "") throws(CryptoError) {
    let text = api + "\0" + parameters
    self.init(text: text, digest: MD5Digest(try Digest.of(text, .md5)), partition: partition)
  }

  /// Makes a key from a text and a digest that were stored. Does not check that the digest belongs to the
  /// text.
  package init(text: String, digest: MD5Digest, partition: String = "") {
    self.partition = partition
    self.text = text
    self.digest = digest
    var hasher = Hasher()
    hasher.combine(digest.high)
    // Hashes the bytes of the partition, because two partitions may differ only in the Unicode form of a
    // letter such as "é". As Swift strings they would be equal.
    var partition = partition
    partition.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    tableHash = UInt64(bitPattern: Int64(hasher.finalize()))
  }

  /// The MD5 of a key's text; `nil` when this machine's libcrypto has no MD5.
  static func digest(of text: [UInt8]) -> MD5Digest? { (try? Digest.of(text, .md5)).map { MD5Digest($0) } }

  /// Whether partition and text have the same bytes. Compares `tableHash` first, because it differs for
  /// nearly all different keys.
  package static func == (a: CacheKey, b: CacheKey) -> Bool {
    a.tableHash == b.tableHash && a.digest == b.digest && a.text.hasSameBytes(as: b.text)
      && a.partition.hasSameBytes(as: b.partition)
  }

  /// Hashes only `tableHash`, which depends on the digest and the partition.
  package func hash(into hasher: inout Hasher) { hasher.combine(tableHash) }
}

/// The 16 bytes of an MD5 digest, as two 64-bit integers.
package struct MD5Digest: Hashable, Sendable {
  /// The first eight bytes, big-endian.
  package let high: UInt64
  /// The last eight bytes, big-endian.
  package let low: UInt64

  /// Makes a digest from 16 bytes.
  package init(_ bytes: [UInt8]) {
    precondition(bytes.count == 16, "an MD5 digest has 16 bytes")
    high = bytes[..<8].reduce(0) { $0 << 8 | UInt64($1) }
    low = bytes[8...].reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// The 16 bytes.
  package var bytes: [UInt8] {
    (0..<16).map { UInt8(truncatingIfNeeded: ($0 < 8 ? high : low) >> UInt64(56 - 8 * ($0 & 7))) }
  }
}
