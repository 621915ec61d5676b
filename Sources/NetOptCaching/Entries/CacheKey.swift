import NetOptCore
package import NetOptCrypto

/// What a response is found by: the MD5 of the API's name and its canonical parameters, in one partition.
///
/// MD5 finds the place and nothing more. Two keys are equal when their texts are, so that two texts with one digest are two
/// keys, and the entry of one is a miss for the other.
package struct CacheKey: Hashable, Sendable {
  /// Whose entries these are: credentials or a tenant, as the caller names them. Partitions never see each other's entries.
  package let partition: String
  /// The text that was hashed: the API's name, a NUL, the canonical parameters.
  package let text: String
  /// The MD5 of `text`, 16 bytes.
  package let digest: MD5Digest
  /// Where this process looks for it: another for each partition, and in each process, so that nobody can pick keys that
  /// all lie in one place.
  package let place: UInt64

  /// Makes a key.
  ///
  /// - Parameters:
  ///   - api: the name of a declared API with its service and environment; else method, origin and path.
  ///   - parameters: the canonical parameters.
  ///   - partition: whose entry it is.
  /// - Throws: when this machine's libcrypto has no MD5.
  package init(api: String, parameters: String, partition: String = "") throws(CryptoError) {
    let text = api + "\0" + parameters
    self.init(text: text, digest: MD5Digest(try Digest.of(text, .md5)), partition: partition)
  }

  /// Makes a key of a text and what is taken for its digest: as it was stored, or one that another text has too.
  package init(text: String, digest: MD5Digest, partition: String = "") {
    self.partition = partition
    self.text = text
    self.digest = digest
    var hasher = Hasher()
    hasher.combine(digest.high)
    // Its bytes: texts that are two ways to write one, "é" and "é", are equal as strings, and two tenants.
    var partition = partition
    partition.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    place = UInt64(bitPattern: Int64(hasher.finalize()))
  }

  /// The digest of a text as it was stored; `nil` when this machine's libcrypto has no MD5.
  static func digest(of text: [UInt8]) -> MD5Digest? { (try? Digest.of(text, .md5)).map { MD5Digest($0) } }

  /// By place first: nearly all keys that differ do so there.
  package static func == (a: CacheKey, b: CacheKey) -> Bool {
    a.place == b.place && a.digest == b.digest && a.text.hasSameBytes(as: b.text)
      && a.partition.hasSameBytes(as: b.partition)
  }

  /// Equal keys have one place.
  package func hash(into hasher: inout Hasher) { hasher.combine(place) }
}

/// The 16 bytes of an MD5 digest, as two words.
package struct MD5Digest: Hashable, Sendable {
  /// The first eight bytes, big-endian.
  package let high: UInt64
  /// The last eight bytes, big-endian.
  package let low: UInt64

  /// Takes 16 bytes.
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
