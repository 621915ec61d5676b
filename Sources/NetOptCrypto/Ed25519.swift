import CCrypto

/// Ed25519 (RFC 8032): EVP_PKEY-ED25519(7), EVP_SIGNATURE-ED25519(7).
package enum Ed25519 {
  /// The length of a public key in bytes.
  package static let publicKeyLength = 32
  /// The length in bytes of a seed, from which a private key is derived.
  package static let seedLength = 32
  /// The length of a signature in bytes.
  package static let signatureLength = 64

  /// A key that signs. Safe to use from any thread.
  package final class PrivateKey: Sendable {
    private let key: KeyHandle
    /// The public key that verifies signatures of this key.
    package let publicKey: PublicKey

    /// Derives the key from a seed. RFC 8032, section 5.1.5, calls the seed the private key.
    ///
    /// - Throws: when the seed does not have 32 bytes.
    package init(seed: SecretBytes) throws(CryptoError) {
      let handle = try seed.withUnsafeBytes { (bytes) throws(CryptoError) in
        guard bytes.count == Ed25519.seedLength else {
          throw CryptoError(
            "reading an Ed25519 key", "a seed must have \(Ed25519.seedLength) bytes, not \(bytes.count)")
        }
        let start = bytes.bindMemory(to: UInt8.self).baseAddress
        let handle = EVP_PKEY_new_raw_private_key(netopt_pkey_ed25519, nil, start, bytes.count)
        guard let handle else { throw CryptoError(failed: "reading an Ed25519 key") }
        return KeyHandle(handle)
      }
      key = handle
      publicKey = try PublicKey(handle)
    }

    /// Makes a new random key.
    package convenience init() throws(CryptoError) {
      try self.init(seed: SecretBytes(randomCount: Ed25519.seedLength))
    }

    /// Signs a message.
    ///
    /// - Returns: 64 bytes. Signing the same message again gives the same bytes.
    package func signature(of message: Span<UInt8>) throws(CryptoError) -> [UInt8] {
      let context = try SignatureContext("signing with Ed25519")
      var isDone = false
      let signature = [UInt8](unsafeUninitializedCapacity: Ed25519.signatureLength) { buffer, filled in
        var count = buffer.count
        isDone =
          EVP_DigestSignInit(context.handle, nil, nil, nil, key.handle) == 1
          && message.withUnsafeBufferPointer {
            EVP_DigestSign(context.handle, buffer.baseAddress, &count, $0.baseAddress, $0.count) == 1
          }
        filled = isDone ? count : 0
      }
      guard isDone else { throw CryptoError(failed: "signing with Ed25519") }
      return signature
    }

    /// Signs a message.
    package func signature(of message: [UInt8]) throws(CryptoError) -> [UInt8] {
      try signature(of: message.span)
    }
  }

  /// A key that verifies. Safe to use from any thread.
  package final class PublicKey: Sendable {
    private let key: KeyHandle
    /// The key in the form of RFC 8032: 32 bytes.
    package let bytes: [UInt8]

    /// Reads a key.
    ///
    /// - Parameter bytes: the key in the form of RFC 8032. This initialiser does not check whether the bytes
    ///   encode a point of the curve. If they do not, no signature is valid.
    /// - Throws: when `bytes` does not have 32 bytes.
    package init(_ bytes: [UInt8]) throws(CryptoError) {
      guard bytes.count == Ed25519.publicKeyLength else {
        throw CryptoError(
          "reading an Ed25519 public key",
          "it must have \(Ed25519.publicKeyLength) bytes, not \(bytes.count)")
      }
      let handle = EVP_PKEY_new_raw_public_key(netopt_pkey_ed25519, nil, bytes, bytes.count)
      guard let handle else { throw CryptoError(failed: "reading an Ed25519 public key") }
      key = KeyHandle(handle)
      self.bytes = bytes
    }

    /// Takes the public key of a key pair.
    fileprivate init(_ key: KeyHandle) throws(CryptoError) {
      self.key = key
      var count = Ed25519.publicKeyLength
      bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
        filled = EVP_PKEY_get_raw_public_key(key.handle, buffer.baseAddress, &count) == 1 ? count : 0
      }
      guard bytes.count == Ed25519.publicKeyLength else {
        throw CryptoError(failed: "reading an Ed25519 public key")
      }
    }

    /// Whether a signature is valid for a message and this key.
    ///
    /// - Throws: when libcrypto fails. A wrong or malformed signature is not an error.
    package func isValidSignature(_ signature: [UInt8], of message: Span<UInt8>) throws(CryptoError) -> Bool {
      guard signature.count == Ed25519.signatureLength else { return false }
      let context = try SignatureContext("verifying with Ed25519")
      guard EVP_DigestVerifyInit(context.handle, nil, nil, nil, key.handle) == 1 else {
        throw CryptoError(failed: "verifying with Ed25519")
      }
      let isValid = message.withUnsafeBufferPointer {
        EVP_DigestVerify(context.handle, signature, signature.count, $0.baseAddress, $0.count) == 1
      }
      // libcrypto records a wrong signature as an error.
      if !isValid { ERR_clear_error() }
      return isValid
    }

    /// Whether a signature is valid for a message and this key.
    package func isValidSignature(_ signature: [UInt8], of message: [UInt8]) throws(CryptoError) -> Bool {
      try isValidSignature(signature, of: message.span)
    }
  }
}

/// Owns an `EVP_PKEY`: EVP_PKEY_free(3), which wipes a private key.
private final class KeyHandle: @unchecked Sendable {
  // Unchecked: a key never changes after its creation, and libcrypto lets several threads use it.
  let handle: OpaquePointer
  init(_ handle: OpaquePointer) { self.handle = handle }
  deinit { EVP_PKEY_free(handle) }
}

/// Owns the context for making or verifying one signature. libcrypto allows only one signature with a
/// context: EVP_DigestSign(3).
private struct SignatureContext: ~Copyable {
  let handle: OpaquePointer

  init(_ operation: String) throws(CryptoError) {
    guard let handle = EVP_MD_CTX_new() else { throw CryptoError(failed: operation) }
    self.handle = handle
  }

  deinit { EVP_MD_CTX_free(handle) }
}
