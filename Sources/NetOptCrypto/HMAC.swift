import CCrypto

/// HMAC (RFC 2104) with one key: EVP_MAC(3), EVP_MAC-HMAC(7). The key is prepared once; contexts that know it are kept
/// and handed to one caller at a time. Safe to use from any thread.
package final class HMAC: Sendable {
  /// A context that knows the key.
  private final class Context: @unchecked Sendable {
    // Unchecked: whoever took it out of `idle`, or made it, is the only one that has it.
    let handle: OpaquePointer
    init(_ handle: OpaquePointer) { self.handle = handle }
    deinit { EVP_MAC_CTX_free(handle) }
  }

  /// libcrypto's HMAC, found once: EVP_MAC_fetch(3).
  private struct Fetched: @unchecked Sendable {
    // Unchecked: an EVP_MAC does not change, and libcrypto lets any thread use it.
    let handle: OpaquePointer?
    init() {
      handle = EVP_MAC_fetch(nil, "HMAC", nil)
      if handle == nil { ERR_clear_error() }
    }
  }

  private static let fetched = Fetched()

  /// The digest that is used.
  package let algorithm: DigestAlgorithm
  private let idle = IdleContexts<Context>()
  /// Is copied and otherwise never used, so that several threads may do so at once.
  private let original: Context

  /// Prepares a key.
  ///
  /// - Parameters:
  ///   - algorithm: the digest.
  ///   - key: of any length. It is copied into libcrypto's memory, which is wiped when this goes away.
  /// - Throws: when libcrypto does not have the digest, or no memory.
  package init(_ algorithm: DigestAlgorithm, key: SecretBytes) throws(CryptoError) {
    original = try Self.context(algorithm, key)
    self.algorithm = algorithm
  }

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
        // An empty key is a key like any other, but without an address libcrypto would ask for the one before.
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

  /// The code of a message.
  ///
  /// - Returns: `algorithm.length` bytes.
  package func code(of message: Span<UInt8>) throws(CryptoError) -> [UInt8] {
    let context = try taken()
    var length = 0
    // Not left uninitialised: for that the standard library looks the array's type up at run time.
    var code = [UInt8](repeating: 0, count: algorithm.length)
    // Without a key the one that the context has is taken again.
    let isDone =
      EVP_MAC_init(context.handle, nil, 0, nil) == 1
      && message.withUnsafeBufferPointer { EVP_MAC_update(context.handle, $0.baseAddress, $0.count) == 1 }
      && EVP_MAC_final(context.handle, &code, &length, code.count) == 1
    guard isDone, length == code.count else {
      throw CryptoError(failed: Self.operation(algorithm))
    }
    idle.put(back: context)
    return code
  }

  /// The code of a message.
  package func code(of message: [UInt8]) throws(CryptoError) -> [UInt8] { try code(of: message.span) }

  /// The code of a text in UTF-8.
  package func code(of text: String) throws(CryptoError) -> [UInt8] { try code(of: text.utf8Span.span) }

  /// Whether a code is that of a message. The time that it takes does not tell where the two differ.
  package func isCode(_ code: [UInt8], of message: Span<UInt8>) throws(CryptoError) -> Bool {
    let right = try self.code(of: message)
    return constantTimeEqual(code, right)
  }

  /// A context for the caller alone.
  private func taken() throws(CryptoError) -> Context {
    if let kept = idle.take() { return kept }
    guard let handle = EVP_MAC_CTX_dup(original.handle) else {
      throw CryptoError(failed: Self.operation(algorithm))
    }
    return Context(handle)
  }

  private static func operation(_ algorithm: DigestAlgorithm) -> String { "HMAC with \(algorithm.rawValue)" }
}

extension HMAC: CustomStringConvertible, CustomReflectable {
  /// Says which digest it is, and nothing of the key.
  package var description: String { "HMAC(\(algorithm.rawValue))" }
  /// Has no children: a dump must not show the key's memory.
  package var customMirror: Mirror { Mirror(self, children: []) }
}
