import CCrypto

/// Computes digests with one algorithm, of one message after the other: EVP_DigestInit(3).
package struct Digest: ~Copyable, Sendable {
  /// Owns an `EVP_MD_CTX`, in which libcrypto keeps the state of a message.
  final class Context: @unchecked Sendable {
    // Unchecked: only the `Digest` that took the context from the idle contexts, or created it, uses the
    // context. A context is tied to no thread.
    let handle: OpaquePointer
    init(_ handle: OpaquePointer) { self.handle = handle }
    deinit { EVP_MD_CTX_free(handle) }
  }

  /// The algorithm.
  package let algorithm: DigestAlgorithm
  private let context: Context
  /// The idle contexts of the algorithm, to which `deinit` returns this context.
  private let idleContexts: IdleContexts<Context>
  /// Whether the context is initialised for a message that is not finished. The message may be empty so far.
  private var isBegun: Bool
  /// Whether a function of libcrypto failed for the present message.
  private var hasFailed = false

  /// Begins a message.
  ///
  /// - Throws: when libcrypto lacks the algorithm or has no memory.
  package init(_ algorithm: DigestAlgorithm) throws(CryptoError) {
    let fetched = try algorithm.fetched
    let kept = fetched.idleContexts.take()
    context = if let kept { kept } else { try Self.context(algorithm, fetched.handle) }
    isBegun = kept == nil
    idleContexts = fetched.idleContexts
    self.algorithm = algorithm
  }

  /// Makes a context and initialises it for a message.
  private static func context(
    _ algorithm: DigestAlgorithm, _ handle: OpaquePointer?
  ) throws(CryptoError) -> Context {
    guard let context = EVP_MD_CTX_new().map(Context.init),
      EVP_DigestInit_ex2(context.handle, handle, nil) == 1
    else { throw CryptoError(failed: operation(algorithm)) }
    return context
  }

  deinit {
    // An unfinished message leaves its bytes in the context. SHA-512 leaves the bytes of its last block,
    // which libcrypto does not wipe at the end of a message. Freeing the context wipes them.
    if !isBegun, !hasFailed, algorithm != .sha512 { idleContexts.put(back: context) }
  }

  /// Adds the next bytes of the message. `finish` reports a failure.
  package mutating func update(_ bytes: Span<UInt8>) {
    begin()
    let isTaken = bytes.withUnsafeBufferPointer {
      EVP_DigestUpdate(context.handle, $0.baseAddress, $0.count) == 1
    }
    if !isTaken { hasFailed = true }
  }

  /// Adds the next bytes of the message.
  package mutating func update(_ bytes: [UInt8]) { update(bytes.span) }

  /// Adds a text as UTF-8.
  package mutating func update(_ text: String) {
    var text = text
    text.withUTF8 { update($0.span) }
  }

  /// Ends the message. The next `update` begins another message.
  ///
  /// - Returns: the digest, `algorithm.length` bytes.
  /// - Throws: when an update failed, or libcrypto fails.
  package mutating func finish() throws(CryptoError) -> [UInt8] {
    begin()
    isBegun = false
    var count: UInt32 = 0
    // The array is initialised: for uninitialised memory, the standard library looks the array's type up at
    // run time.
    var digest = [UInt8](repeating: 0, count: algorithm.length)
    if !hasFailed { hasFailed = EVP_DigestFinal_ex(context.handle, &digest, &count) != 1 }
    guard !hasFailed, count == algorithm.length else {
      throw CryptoError(failed: Self.operation(algorithm))
    }
    return digest
  }

  /// Initialises the context for the next message, unless a message has begun.
  private mutating func begin() {
    if isBegun { return }
    isBegun = true
    // Without an algorithm argument, libcrypto uses the context's algorithm again.
    hasFailed = EVP_DigestInit_ex2(context.handle, nil, nil) != 1
  }

  /// The operation as an error names it.
  private static func operation(_ algorithm: DigestAlgorithm) -> String { "the \(algorithm.rawValue) digest" }
}

extension Digest {
  /// Computes the digest of a whole message.
  package static func of(_ message: Span<UInt8>, _ algorithm: DigestAlgorithm) throws(CryptoError) -> [UInt8]
  {
    var digest = try Digest(algorithm)
    digest.update(message)
    return try digest.finish()
  }

  /// Computes the digest of a whole message.
  package static func of(_ message: [UInt8], _ algorithm: DigestAlgorithm) throws(CryptoError) -> [UInt8] {
    try of(message.span, algorithm)
  }

  /// Computes the digest of a text in UTF-8.
  package static func of(_ text: String, _ algorithm: DigestAlgorithm) throws(CryptoError) -> [UInt8] {
    try of(text.utf8Span.span, algorithm)
  }
}
