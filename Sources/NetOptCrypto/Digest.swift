import CCrypto

/// A digest in the making: EVP_DigestInit(3). After `finish` the next message can begin, with the same context: one
/// that is kept costs nothing but the hashing.
package struct Digest: ~Copyable, @unchecked Sendable {
  // Unchecked: the context has one owner, this value, and is changed by nobody else. It is tied to no thread.

  /// The algorithm.
  package let algorithm: DigestAlgorithm
  private let context: OpaquePointer
  private var isFresh = true
  private var hasFailed = false

  /// Begins a message.
  ///
  /// - Throws: when libcrypto does not have the algorithm, or no memory.
  package init(_ algorithm: DigestAlgorithm) throws(CryptoError) {
    context = try Self.context(algorithm)
    self.algorithm = algorithm
  }

  private static func context(_ algorithm: DigestAlgorithm) throws(CryptoError) -> OpaquePointer {
    let handle = try algorithm.handle
    let context = EVP_MD_CTX_new()
    guard let context, EVP_DigestInit_ex2(context, handle, nil) == 1 else {
      EVP_MD_CTX_free(context)
      throw CryptoError(failed: operation(algorithm))
    }
    return context
  }

  deinit { EVP_MD_CTX_free(context) }

  /// Takes the next bytes of the message. What fails is said by `finish`.
  package mutating func update(_ bytes: Span<UInt8>) {
    if !isFresh { begin() }
    let isTaken = bytes.withUnsafeBufferPointer { EVP_DigestUpdate(context, $0.baseAddress, $0.count) == 1 }
    if !isTaken { hasFailed = true }
  }

  /// Takes the next bytes of the message.
  package mutating func update(_ bytes: [UInt8]) { update(bytes.span) }

  /// Takes a text as UTF-8.
  package mutating func update(_ text: String) {
    var text = text
    text.withUTF8 { update($0.span) }
  }

  /// Ends the message. What comes next begins another one.
  ///
  /// - Returns: the digest, `algorithm.length` bytes.
  package mutating func finish() throws(CryptoError) -> [UInt8] {
    if !isFresh { begin() }
    isFresh = false
    var count: UInt32 = 0
    let digest = [UInt8](unsafeUninitializedCapacity: algorithm.length) { buffer, filled in
      if !hasFailed { hasFailed = EVP_DigestFinal_ex(context, buffer.baseAddress, &count) != 1 }
      filled = hasFailed ? 0 : Int(count)
    }
    guard digest.count == algorithm.length else { throw CryptoError(failed: Self.operation(algorithm)) }
    return digest
  }

  private mutating func begin() {
    isFresh = true
    // Without an algorithm the one that the context has is taken again.
    hasFailed = EVP_DigestInit_ex2(context, nil, nil) != 1
  }

  private static func operation(_ algorithm: DigestAlgorithm) -> String { "the \(algorithm.rawValue) digest" }
}

extension Digest {
  /// The digest of a whole message.
  package static func of(_ message: Span<UInt8>, _ algorithm: DigestAlgorithm) throws(CryptoError) -> [UInt8]
  {
    let handle = try algorithm.handle
    var isDone = false
    let digest = [UInt8](unsafeUninitializedCapacity: algorithm.length) { buffer, filled in
      isDone = message.withUnsafeBufferPointer {
        EVP_Digest($0.baseAddress, $0.count, buffer.baseAddress, nil, handle, nil) == 1
      }
      filled = isDone ? algorithm.length : 0
    }
    guard isDone else { throw CryptoError(failed: operation(algorithm)) }
    return digest
  }

  /// The digest of a whole message.
  package static func of(_ message: [UInt8], _ algorithm: DigestAlgorithm) throws(CryptoError) -> [UInt8] {
    try of(message.span, algorithm)
  }

  /// The digest of a text in UTF-8.
  package static func of(_ text: String, _ algorithm: DigestAlgorithm) throws(CryptoError) -> [UInt8] {
    try of(text.utf8Span.span, algorithm)
  }
}
