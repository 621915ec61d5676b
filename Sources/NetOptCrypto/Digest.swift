import CCrypto

/// A digest in the making: EVP_DigestInit(3). After `finish` the next message can begin.
package struct Digest: ~Copyable, Sendable {
  /// What libcrypto keeps of a message.
  final class Context: @unchecked Sendable {
    // Unchecked: whoever took it out of the idle ones, or made it, is the only one that has it. It is tied to no thread.
    let handle: OpaquePointer
    init(_ handle: OpaquePointer) { self.handle = handle }
    deinit { EVP_MD_CTX_free(handle) }
  }

  /// The algorithm.
  package let algorithm: DigestAlgorithm
  private let context: Context
  private let idle: IdleContexts<Context>
  /// Whether the context has the beginning of a message, be it an empty one.
  private var isBegun: Bool
  private var hasFailed = false

  /// Begins a message.
  ///
  /// - Throws: when libcrypto does not have the algorithm, or no memory.
  package init(_ algorithm: DigestAlgorithm) throws(CryptoError) {
    let fetched = try algorithm.fetched
    let kept = fetched.idle.take()
    context = if let kept { kept } else { try Self.context(algorithm, fetched.handle) }
    isBegun = kept == nil
    idle = fetched.idle
    self.algorithm = algorithm
  }

  private static func context(
    _ algorithm: DigestAlgorithm, _ handle: OpaquePointer?
  ) throws(CryptoError) -> Context {
    guard let context = EVP_MD_CTX_new().map(Context.init),
      EVP_DigestInit_ex2(context.handle, handle, nil) == 1
    else { throw CryptoError(failed: operation(algorithm)) }
    return context
  }

  deinit {
    // Where a message was not ended its bytes are still there, and those of its last block with SHA-512, which libcrypto does
    // not wipe at the end: freeing does.
    if !isBegun, !hasFailed, algorithm != .sha512 { idle.put(back: context) }
  }

  /// Takes the next bytes of the message. What fails is said by `finish`.
  package mutating func update(_ bytes: Span<UInt8>) {
    begin()
    let isTaken = bytes.withUnsafeBufferPointer {
      EVP_DigestUpdate(context.handle, $0.baseAddress, $0.count) == 1
    }
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
    begin()
    isBegun = false
    var count: UInt32 = 0
    // Not left uninitialised: for that the standard library looks the array's type up at run time.
    var digest = [UInt8](repeating: 0, count: algorithm.length)
    if !hasFailed { hasFailed = EVP_DigestFinal_ex(context.handle, &digest, &count) != 1 }
    guard !hasFailed, count == algorithm.length else {
      throw CryptoError(failed: Self.operation(algorithm))
    }
    return digest
  }

  private mutating func begin() {
    if isBegun { return }
    isBegun = true
    // Without an algorithm the one that the context has is taken again.
    hasFailed = EVP_DigestInit_ex2(context.handle, nil, nil) != 1
  }

  private static func operation(_ algorithm: DigestAlgorithm) -> String { "the \(algorithm.rawValue) digest" }
}

extension Digest {
  /// The digest of a whole message.
  package static func of(_ message: Span<UInt8>, _ algorithm: DigestAlgorithm) throws(CryptoError) -> [UInt8]
  {
    var digest = try Digest(algorithm)
    digest.update(message)
    return try digest.finish()
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
