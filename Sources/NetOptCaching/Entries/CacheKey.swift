import NetOptCore
package import NetOptCrypto

/// The key of a stored response: the MD5 of the API's name and its canonical parameters, in a partition.
///
/// MD5 only finds the location of an entry. Two keys are equal only if their texts are equal. So two texts
/// with the same digest are two keys, and the entry of one is a miss for the other.
package struct CacheKey: Hashable, Sendable {
  /// The partition, named by the caller for a set of credentials or a tenant. A partition never sees the
  /// entries of another one.
  package let partition: String
  /// The hashed text: the API's name, a NUL, the canonical parameters.
  package let text: String
  /// The MD5 of `text`, 16 bytes.
  package let digest: MD5Digest
  /// The hash of the key in the tables of this process. It depends on the partition and on a seed per
  /// process, so that nobody can choose keys that all have the same hash.
  package let tableHash: UInt64

  /// Makes a key.
  ///
  /// - Parameters:
  ///   - api: the name of a declared API with its service and environment; otherwise method, origin and path.
  ///   - parameters: the canonical parameters.
  ///   - partition: the partition of the entry.
  /// - Throws: `CryptoError` when this machine's libcrypto has no MD5.
  package init(api: String, parameters: String, partition: String = "") throws(CryptoError) {
    let text = api + "\0" + parameters
    self.init(text: text, digest: MD5Digest(try Digest.of(text, .md5)), partition: partition)
  }

  /// Makes a key from a text and its digest, as they were stored. The digest need not match the text.
  package init(text: String, digest: MD5Digest, partition: String = "") {
    self.partition = partition
    self.text = text
    self.digest = digest
    var hasher = Hasher()
    hasher.combine(digest.high)
    // Hashes the bytes of the partition. The two Unicode forms of "é" are equal as strings, but name two
    // tenants.
    var partition = partition
    partition.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    tableHash = UInt64(bitPattern: Int64(hasher.finalize()))
  }

  /// The MD5 of a stored text; `nil` when this machine's libcrypto has no MD5.
  static func digest(of text: [UInt8]) -> MD5Digest? { (try? Digest.of(text, .md5)).map { MD5Digest($0) } }

  /// Compares `tableHash` first, because it differs for nearly all different keys.
  package static func == (a: CacheKey, b: CacheKey) -> Bool {
    a.tableHash == b.tableHash && a.digest == b.digest && a.text.hasSameBytes(as: b.text)
      && a.partition.hasSameBytes(as: b.partition)
  }

  /// Equal keys have the same `tableHash`.
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
