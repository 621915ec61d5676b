import CCrypto

/// Bytes that nobody else is to see: a key, a password. They are overwritten when they are let go of
/// (OPENSSL_cleanse(3)), never move, and never get into a text.
package final class SecretBytes: @unchecked Sendable {
  // Unchecked: the memory is written by the initialisers alone, before anybody else has the object.
  private let memory: UnsafeMutableRawBufferPointer

  /// How many there are.
  package var count: Int { memory.count }

  /// Makes bytes.
  ///
  /// - Parameter fill: is given the memory, zeros, and writes to it.
  /// - Throws: what `fill` throws; the memory is wiped then too.
  package init<Failure: Error>(
    count: Int, _ fill: (UnsafeMutableRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    memory = .allocate(byteCount: count, alignment: 16)
    memory.initializeMemory(as: UInt8.self, repeating: 0)
    try fill(memory)
  }

  /// Copies bytes. The ones that were copied are left as they are: an array may have other owners.
  package convenience init(copying bytes: Span<UInt8>) {
    self.init(count: bytes.count) { memory in
      bytes.withUnsafeBytes { memory.copyMemory(from: $0) }
    }
  }

  /// Copies bytes.
  package convenience init(copying bytes: [UInt8]) { self.init(copying: bytes.span) }

  /// Makes bytes by chance: RAND_priv_bytes(3).
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

  /// Lends the bytes. They must not be kept beyond the call.
  package func withUnsafeBytes<Result: ~Copyable, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(UnsafeRawBufferPointer(memory))
  }

  /// Lends the bytes.
  package func withSpan<Result: ~Copyable, Failure: Error>(
    _ body: (Span<UInt8>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(memory.bindMemory(to: UInt8.self).span)
  }

  /// Some of the bytes, as a secret of their own.
  ///
  /// - Precondition: the range lies within `0..<count`.
  package func part(_ range: Range<Int>) -> SecretBytes {
    withSpan { SecretBytes(copying: $0.extracting(range)) }
  }
}

extension SecretBytes: Equatable {
  /// Whether both are the same, in a time that does not tell where they differ.
  package static func == (a: SecretBytes, b: SecretBytes) -> Bool {
    a.withSpan { a in b.withSpan { constantTimeEqual(a, $0) } }
  }
}

extension SecretBytes: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// How many bytes there are; never which.
  package var description: String { "SecretBytes(\(count))" }
  /// How many bytes there are.
  package var debugDescription: String { description }
  /// Has no children: a dump must not show the memory.
  package var customMirror: Mirror { Mirror(self, children: []) }
}

/// Whether both are the same. The time that it takes depends on the lengths alone: CRYPTO_memcmp(3).
package func constantTimeEqual(_ a: Span<UInt8>, _ b: Span<UInt8>) -> Bool {
  guard a.count == b.count else { return false }
  // Of empty ones there is no address.
  guard a.count > 0 else { return true }
  return a.withUnsafeBufferPointer { a in
    b.withUnsafeBufferPointer { b in CRYPTO_memcmp(a.baseAddress, b.baseAddress, a.count) == 0 }
  }
}

/// Whether both are the same, in a time that does not tell where they differ.
package func constantTimeEqual(_ a: [UInt8], _ b: [UInt8]) -> Bool { constantTimeEqual(a.span, b.span) }

/// Bytes by chance that need not be kept secret, such as a nonce: RAND_bytes(3).
package func randomBytes(_ count: Int) throws(CryptoError) -> [UInt8] {
  var isDone = false
  let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
    isDone = RAND_bytes(buffer.baseAddress, Int32(count)) == 1
    filled = isDone ? count : 0
  }
  guard isDone else { throw CryptoError(failed: "making \(count) random bytes") }
  return bytes
}
