import CCrypto

/// AES-256 in Galois/counter mode (NIST SP 800-38D): EVP_EncryptInit(3), section "GCM and OCB modes".
package enum AESGCM {
  /// The length of a key in bytes.
  package static let keyLength = 32
  /// The length of a nonce in bytes. Two messages with the same key must not have the same nonce.
  package static let nonceLength = 12
  /// The length in bytes of the authentication tag, which follows the ciphertext.
  package static let tagLength = 16

  /// Encrypts a message.
  ///
  /// - Parameters:
  ///   - key: 32 bytes.
  ///   - nonce: 12 bytes, never used before with this key.
  ///   - additional: data that the tag authenticates and that is not encrypted. `open` needs the same data.
  /// - Returns: the ciphertext, which is as long as the message, and a tag of 16 bytes.
  /// - Throws: when the key or the nonce has the wrong length, or libcrypto fails.
  package static func seal(
    _ message: SecretBytes, key: SecretBytes, nonce: [UInt8], additional: [UInt8]
  ) throws(CryptoError) -> [UInt8] {
    let operation = "encrypting with AES-256-GCM"
    let context = try Context(key: key, nonce: nonce, isSealing: true, operation)
    var isDone = false
    let sealed = [UInt8](unsafeUninitializedCapacity: message.count + tagLength) { buffer, filled in
      var count: Int32 = 0
      isDone =
        EVP_EncryptUpdate(context.handle, nil, &count, additional, Int32(additional.count)) == 1
        && message.withUnsafeBytes { bytes in
          bytes.isEmpty
            || EVP_EncryptUpdate(
              context.handle, buffer.baseAddress, &count,
              bytes.bindMemory(to: UInt8.self).baseAddress, Int32(bytes.count)) == 1
        }
        && EVP_EncryptFinal_ex(context.handle, buffer.baseAddress, &count) == 1
        && netopt_gcm_get_tag(
          context.handle, Int32(tagLength), buffer.baseAddress.map { $0 + message.count }) == 1
      filled = isDone ? message.count + tagLength : 0
    }
    guard isDone else { throw CryptoError(failed: operation) }
    return sealed
  }

  /// Decrypts a message.
  ///
  /// - Parameter sealed: the ciphertext and the tag.
  /// - Returns: the message; `nil` if it was sealed with another key, nonce or additional data, was changed,
  ///   or is shorter than a tag.
  /// - Throws: when the key or the nonce has the wrong length, or libcrypto fails.
  package static func open(
    _ sealed: [UInt8], key: SecretBytes, nonce: [UInt8], additional: [UInt8]
  ) throws(CryptoError) -> SecretBytes? {
    let operation = "decrypting with AES-256-GCM"
    let count = sealed.count - tagLength
    guard count >= 0 else { return nil }
    let context = try Context(key: key, nonce: nonce, isSealing: false, operation)
    var isGenuine = false
    let message = try SecretBytes(count: count) { (memory) throws(CryptoError) in
      var written: Int32 = 0
      let start = memory.bindMemory(to: UInt8.self).baseAddress
      let isRead = sealed.withUnsafeBufferPointer { sealed in
        EVP_DecryptUpdate(context.handle, nil, &written, additional, Int32(additional.count)) == 1
          && (count == 0
            || EVP_DecryptUpdate(context.handle, start, &written, sealed.baseAddress, Int32(count)) == 1)
          && netopt_gcm_set_tag(
            context.handle, Int32(tagLength), sealed.baseAddress.map { $0 + count }) == 1
      }
      guard isRead else { throw CryptoError(failed: operation) }
      var rest: UInt8 = 0
      isGenuine = EVP_DecryptFinal_ex(context.handle, &rest, &written) == 1
    }
    // libcrypto may record a wrong tag as an error.
    if !isGenuine { ERR_clear_error() }
    return isGenuine ? message : nil
  }

  /// Owns an `EVP_CIPHER_CTX`, which wipes the key when it is freed.
  private final class Context {
    let handle: OpaquePointer

    /// Prepares the cipher for one message.
    ///
    /// - Parameter isSealing: whether the cipher encrypts. If false, it decrypts.
    init(
      key: SecretBytes, nonce: [UInt8], isSealing: Bool, _ operation: String
    ) throws(CryptoError) {
      guard key.count == AESGCM.keyLength else {
        throw CryptoError(operation, "the key has \(key.count) bytes, not \(AESGCM.keyLength)")
      }
      guard nonce.count == AESGCM.nonceLength else {
        throw CryptoError(operation, "the nonce has \(nonce.count) bytes, not \(AESGCM.nonceLength)")
      }
      guard let handle = EVP_CIPHER_CTX_new() else { throw CryptoError(failed: operation) }
      self.handle = handle
      let isReady = key.withUnsafeBytes { key in
        EVP_CipherInit_ex(
          handle, EVP_aes_256_gcm(), nil, key.bindMemory(to: UInt8.self).baseAddress, nonce,
          isSealing ? 1 : 0) == 1
      }
      guard isReady else { throw CryptoError(failed: operation) }
    }

    deinit { EVP_CIPHER_CTX_free(handle) }
  }
}
