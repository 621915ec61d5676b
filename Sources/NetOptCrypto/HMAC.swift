import CCrypto

/// HMAC (RFC 2104) with one key: EVP_MAC(3), EVP_MAC-HMAC(7). The key is prepared once. The contexts that
/// hold the prepared key are kept for later messages, and each serves one caller at a time. Safe to use from
/// any thread.
package final class HMAC: Sendable {
  /// Owns an `EVP_MAC_CTX` that holds the prepared key.
  private final class Context: @unchecked Sendable {
    // Unchecked: only the caller that took the context from `idleContexts`, or created it, uses the context.
    // The exception is `original`, which is only copied.
    let handle: OpaquePointer
    init(_ handle: OpaquePointer) { self.handle = handle }
    deinit { EVP_MAC_CTX_free(handle) }
  }

  /// libcrypto's HMAC implementation, fetched once: EVP_MAC_fetch(3).
  private struct Fetched: @unchecked Sendable {
    // Unchecked: an EVP_MAC never changes, and libcrypto lets any thread use it.
    /// The `EVP_MAC`; `nil` if this machine's libcrypto lacks HMAC.
    let handle: OpaquePointer?
    init() {
      handle = EVP_MAC_fetch(nil, "HMAC", nil)
      if handle == nil { ERR_clear_error() }
    }
  }

  private static let fetched = Fetched()

  /// The digest of the HMAC.
  package let algorithm: DigestAlgorithm
  private let idleContexts = IdleContexts<Context>()
  /// The context from which the others are copied. It computes no code itself, so several threads may copy it
  /// at once.
  private let original: Context

  /// Prepares a key.
  ///
  /// - Parameters:
  ///   - algorithm: the digest.
  ///   - key: the key, of any length. It is copied into libcrypto's memory, which is wiped when the HMAC is
  ///     released.
  /// - Throws: when libcrypto lacks the digest or HMAC, or has no memory.
  package init(_ algorithm: DigestAlgorithm, key: SecretBytes) throws(CryptoError) {
    original = try Self.context(algorithm, key)
    self.algorithm = algorithm
  }

  /// Makes a context and prepares the key in it.
  private static func context(
    _ algorithm: DigestAlgorithm, _ key: SecretBytes
  ) throws(CryptoError) -> Context {
    _ = try algorithm.fetched
    guard let mac = fetched.handle, let handle = EVP_MAC_CTX_new(mac) else {
      throw CryptoError(failed: operation(algorithm))
    }
    let context = Context(handle)
    let isReady = algorithm.rawValue.withCString { name in
      var parameters = [
        OSSL_PARAM_construct_utf8_string(netopt_mac_digest, UnsafeMutablePointer(mutating: name), 0),
        OSSL_PARAM_construct_end(),
      ]
      return key.withUnsafeBytes { key in
        // An empty key is valid, but with a null address libcrypto would look for a previous key.
        var none: UInt8 = 0
        return withUnsafePointer(to: &none) { none in
          let start = key.count > 0 ? key.bindMemory(to: UInt8.self).baseAddress : none
          return EVP_MAC_init(handle, start, key.count, &parameters) == 1
        }
      }
    }
    guard isReady else { throw CryptoError(failed: operation(algorithm)) }
    return context
  }

  /// Computes the authentication code of a message.
  ///
  /// - Returns: `algorithm.length` bytes.
  package func code(of message: Span<UInt8>) throws(CryptoError) -> [UInt8] {
    let context = try taken()
    var length = 0
    // The array is initialised: for uninitialised memory, the standard library looks the array's type up at
    // run time.
    var code = [UInt8](repeating: 0, count: algorithm.length)
    // Without a key argument, libcrypto uses the context's key again.
    let isDone =
      EVP_MAC_init(context.handle, nil, 0, nil) == 1
      && message.withUnsafeBufferPointer { EVP_MAC_update(context.handle, $0.baseAddress, $0.count) == 1 }
      && EVP_MAC_final(context.handle, &code, &length, code.count) == 1
    guard isDone, length == code.count else {
      throw CryptoError(failed: Self.operation(algorithm))
    }
    idleContexts.put(back: context)
    return code
  }

  /// Computes the authentication code of a message.
  package func code(of message: [UInt8]) throws(CryptoError) -> [UInt8] { try code(of: message.span) }

  /// Computes the authentication code of a text in UTF-8.
  package func code(of text: String) throws(CryptoError) -> [UInt8] { try code(of: text.utf8Span.span) }

  /// Whether `code` is the authentication code of a message. The time of the comparison does not reveal where
  /// `code` differs from the right one.
  package func isCode(_ code: [UInt8], of message: Span<UInt8>) throws(CryptoError) -> Bool {
    let right = try self.code(of: message)
    return constantTimeEqual(code, right)
  }

  /// Takes an idle context, or makes a copy of `original`.
  private func taken() throws(CryptoError) -> Context {
    if let kept = idleContexts.take() { return kept }
    guard let handle = EVP_MAC_CTX_dup(original.handle) else {
      throw CryptoError(failed: Self.operation(algorithm))
    }
    return Context(handle)
  }

  /// The operation as an error names it.
  private static func operation(_ algorithm: DigestAlgorithm) -> String { "HMAC with \(algorithm.rawValue)" }
}

extension HMAC: CustomStringConvertible, CustomReflectable {
  /// The name of the digest, without the key.
  package var description: String { "HMAC(\(algorithm.rawValue))" }
  /// A mirror without children: a dump must not show the key's memory.
  package var customMirror: Mirror { Mirror(self, children: []) }
}
