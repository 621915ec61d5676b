import CCrypto

/// Secret bytes, such as a key or a password. Their memory is overwritten when the object is released
/// (OPENSSL_cleanse(3)). The bytes never move, so no copy stays behind. No description of the object shows
/// them.
package final class SecretBytes: @unchecked Sendable {
  // Unchecked: only the initialisers write the memory, before any other code has the object.
  private let memory: UnsafeMutableRawBufferPointer

  /// The number of bytes.
  package var count: Int { memory.count }

  /// Allocates memory, and has a closure fill it.
  ///
  /// - Parameter fill: gets the memory, filled with zeros, and writes to it.
  /// - Throws: the error of `fill`. The memory is wiped in this case too.
  package init<Failure: Error>(
    count: Int, _ fill: (UnsafeMutableRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    memory = .allocate(byteCount: count, alignment: 16)
    memory.initializeMemory(as: UInt8.self, repeating: 0)
    try fill(memory)
  }

  /// Copies bytes. The originals are not wiped, because an array may have other owners.
  package convenience init(copying bytes: Span<UInt8>) {
    self.init(count: bytes.count) { memory in
      bytes.withUnsafeBytes { memory.copyMemory(from: $0) }
    }
  }

  /// Copies bytes.
  package convenience init(copying bytes: [UInt8]) { self.init(copying: bytes.span) }

  /// Makes random bytes: RAND_priv_bytes(3).
  package convenience init(randomCount count: Int) throws(CryptoError) {
    try self.init(count: count) { (memory) throws(CryptoError) in
      guard RAND_priv_bytes(memory.bindMemory(to: UInt8.self).baseAddress, Int32(count)) == 1 else {
        throw CryptoError(failed: "making \(count) random bytes")
      }
    }
  }

  deinit {
    OPENSSL_cleanse(memory.baseAddress, memory.count)
    memory.deallocate()
  }

  /// Lends the bytes to a closure, which must not keep them beyond the call.
  package func withUnsafeBytes<Result: ~Copyable, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(UnsafeRawBufferPointer(memory))
  }

  /// Lends the bytes to a closure.
  package func withSpan<Result: ~Copyable, Failure: Error>(
    _ body: (Span<UInt8>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(memory.bindMemory(to: UInt8.self).span)
  }

  /// Copies a part of the bytes into a new secret.
  ///
  /// - Precondition: the range lies within `0..<count`.
  package func part(_ range: Range<Int>) -> SecretBytes {
    withSpan { SecretBytes(copying: $0.extracting(range)) }
  }
}

extension SecretBytes: Equatable {
  /// Whether both secrets are equal. The time of the comparison does not reveal where they differ.
  package static func == (a: SecretBytes, b: SecretBytes) -> Bool {
    a.withSpan { a in b.withSpan { constantTimeEqual(a, $0) } }
  }
}

extension SecretBytes: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// The number of bytes, and never their values.
  package var description: String { "SecretBytes(\(count))" }
  /// The number of bytes, and never their values.
  package var debugDescription: String { description }
  /// A mirror without children: a dump must not show the memory.
  package var customMirror: Mirror { Mirror(self, children: []) }
}

/// Whether both byte sequences are equal. The time of the comparison depends only on the lengths:
/// CRYPTO_memcmp(3).
package func constantTimeEqual(_ a: Span<UInt8>, _ b: Span<UInt8>) -> Bool {
  guard a.count == b.count else { return false }
  // Empty spans have no address.
  guard a.count > 0 else { return true }
  return a.withUnsafeBufferPointer { a in
    b.withUnsafeBufferPointer { b in CRYPTO_memcmp(a.baseAddress, b.baseAddress, a.count) == 0 }
  }
}

/// Whether both byte sequences are equal. The time of the comparison depends only on the lengths.
package func constantTimeEqual(_ a: [UInt8], _ b: [UInt8]) -> Bool { constantTimeEqual(a.span, b.span) }

/// Makes random bytes that need not be secret, such as a nonce: RAND_bytes(3).
package func randomBytes(_ count: Int) throws(CryptoError) -> [UInt8] {
  var isDone = false
  let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
    isDone = RAND_bytes(buffer.baseAddress, Int32(count)) == 1
    filled = isDone ? count : 0
  }
  guard isDone else { throw CryptoError(failed: "making \(count) random bytes") }
  return bytes
}
