import CCrypto
import NetOptCore

/// A public key, or a private key with its public half, read from PEM (RFC 7468): Ed25519, ECDSA on P-256, or
/// RSA with 2048 to 16,384 bits. Safe to use from any thread.
package final class AsymmetricKey: @unchecked Sendable {
  // Unchecked: an EVP_PKEY never changes after its creation, and libcrypto lets several threads use it.

  /// The kinds of keys.
  package enum Kind: Sendable {
    /// Ed25519.
    case ed25519
    /// ECDSA on the curve P-256.
    case p256
    /// RSA, for RSASSA-PSS and RSASSA-PKCS1-v1_5.
    case rsa
    /// RSA whose key says that it is only for RSASSA-PSS (RFC 4055).
    case rsaPSS
  }

  /// The `EVP_PKEY`, which this object owns.
  private let key: OpaquePointer
  /// The kind of key.
  package let kind: Kind
  /// Whether the key can sign. Every key can verify.
  package let isPrivate: Bool

  /// The permitted sizes of RSA keys, in bits. The time to make a signature grows with the third power of the
  /// size: with a key of 65,536 bits it takes minutes. libcrypto itself does not verify with a key of more
  /// than 16,384 bits (OPENSSL_RSA_MAX_MODULUS_BITS).
  private static let bits: ClosedRange<Int32> = 2048...16_384

  /// The maximum length of a PEM text in bytes. A private RSA key of 16,384 bits has 13,000. A file of 564 KB
  /// may describe an RSA key of 20,000 primes, for which libcrypto takes 4 GB before it reports the size.
  private static let longest = 32 * 1024

  /// Reads a key.
  ///
  /// - Parameters:
  ///   - pem: the text with its BEGIN and END lines, at most 32 KiB. Encrypted keys are refused.
  ///   - isPrivate: whether to read a private key. If false, reads a public key.
  /// - Throws: when the text is not such a key, or the key's kind or size is not supported.
  package init(pem: SecretBytes, isPrivate: Bool) throws(CryptoError) {
    let operation = isPrivate ? "reading a private key (PEM)" : "reading a public key (PEM)"
    guard pem.count <= Self.longest else {
      throw CryptoError(operation, "the text has more than \(Self.longest >> 10) KiB")
    }
    // Attempts that fail leave errors in the queue of the thread.
    defer { ERR_clear_error() }
    let key = pem.withUnsafeBytes { Self.key(in: $0, isPrivate: isPrivate) }
    guard let key else {
      throw CryptoError(
        operation, "it is damaged, encrypted, or no key of Ed25519, P-256 or RSA in PEM form")
    }
    guard let kind = Self.kind(of: key) else {
      EVP_PKEY_free(key)
      throw CryptoError(operation, "it is neither Ed25519, nor P-256, nor RSA with 2048 to 16384 bits")
    }
    self.key = key
    self.kind = kind
    self.isPrivate = isPrivate
  }

  // EVP_PKEY_free(3) wipes a private key.
  deinit { EVP_PKEY_free(key) }

  /// A type of key: the name of libcrypto's decoder, and the object identifier in DER that names the type in
  /// the general forms of keys (RFC 5958; RFC 7468, section 13).
  private struct KeyType {
    let name: String
    let identifier: [UInt8]

    static let ed25519 = KeyType(name: "ED25519", identifier: [0x06, 0x03, 0x2b, 0x65, 0x70])
    static let curve = KeyType(
      name: "EC", identifier: [0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01])
    static let rsa = KeyType(
      name: "RSA", identifier: [0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01])
    static let rsaPSS = KeyType(
      name: "RSA-PSS", identifier: [0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0a])
    static let all = [ed25519, curve, rsa, rsaPSS]
  }

  /// Reads the first block of a PEM text that is a key; `nil` if the text has none, or the key is encrypted
  /// or of another type. libcrypto is asked only for the supported types: it may take minutes to decode a DSA
  /// or Diffie-Hellman key.
  private static func key(in pem: UnsafeRawBufferPointer, isPrivate: Bool) -> OpaquePointer? {
    guard let bio = BIO_new_mem_buf(pem.baseAddress, Int32(clamping: pem.count)) else { return nil }
    defer { BIO_free(bio) }
    while true {
      var label: UnsafeMutablePointer<CChar>?
      var header: UnsafeMutablePointer<CChar>?
      var bytes: UnsafeMutablePointer<UInt8>?
      var count = 0
      guard PEM_read_bio(bio, &label, &header, &bytes, &count) == 1, let label, let header, let bytes else {
        return nil
      }
      defer {
        CRYPTO_free(label, nil, 0)
        CRYPTO_free(header, nil, 0)
        CRYPTO_clear_free(bytes, count, nil, 0)
      }
      let der = UnsafeRawBufferPointer(start: bytes, count: count)
      let types: [KeyType]
      switch (String(cString: label), isPrivate) {
      case ("PRIVATE KEY", true), ("PUBLIC KEY", false):
        types = KeyType.all.filter { der.firstRange(ofBytes: $0.identifier) != nil }
      // RFC 8017, appendix A.1, and RFC 5915.
      case ("RSA PRIVATE KEY", true), ("RSA PUBLIC KEY", false): types = [.rsa]
      case ("EC PRIVATE KEY", true): types = [.curve]
      // `openssl ecparam -genkey` writes a block with the name of the curve first.
      default: continue
      }
      // A header says that the block is encrypted (RFC 1421).
      guard header.pointee == 0, !CurveParameters.occur(in: der) else { return nil }
      for type in types {
        if let key = decode(der, type.name, isPrivate) { return key }
      }
      return nil
    }
  }

  /// Decodes a key of one type: OSSL_DECODER_CTX_new_for_pkey(3).
  private static func decode(
    _ der: UnsafeRawBufferPointer, _ type: String, _ isPrivate: Bool
  ) -> OpaquePointer? {
    var key: OpaquePointer?
    let selection = isPrivate ? netopt_select_key_pair : netopt_select_public_key
    // The decoder keeps the pointer to the name of the form.
    guard
      let decoder = OSSL_DECODER_CTX_new_for_pkey(&key, netopt_form_der, nil, type, selection, nil, nil)
    else { return nil }
    defer { OSSL_DECODER_CTX_free(decoder) }
    var start = der.bindMemory(to: UInt8.self).baseAddress
    var count = der.count
    return OSSL_DECODER_from_data(decoder, &start, &count) == 1 ? key : nil
  }

  /// Whether the size of an RSA key is permitted, and none of its numbers is too long (`RSANumbers`).
  private static func isUsableRSA(_ key: OpaquePointer) -> Bool {
    let size = EVP_PKEY_get_bits(key)
    guard bits.contains(size) else { return false }
    return RSANumbers.areUsable(most: size) { name in
      var number: OpaquePointer?
      guard EVP_PKEY_get_bn_param(key, name, &number) == 1 else { return nil }
      defer { BN_clear_free(number) }
      return BN_num_bits(number)
    }
  }

  /// Returns the kind of a key; `nil` if its type, curve or size is not supported.
  private static func kind(of key: OpaquePointer) -> Kind? {
    switch EVP_PKEY_get_id(key) {
    case EVP_PKEY_ED25519: return .ed25519
    case EVP_PKEY_RSA: return isUsableRSA(key) ? .rsa : nil
    case EVP_PKEY_RSA_PSS: return isUsableRSA(key) ? .rsaPSS : nil
    case EVP_PKEY_EC:
      var name = [CChar](repeating: 0, count: 64)
      var count = 0
      guard EVP_PKEY_get_group_name(key, &name, name.count, &count) == 1 else { return nil }
      let group = String(decoding: name.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
      return group == "prime256v1" || group == "P-256" ? .p256 : nil
    default: return nil
    }
  }

  /// The public half as SubjectPublicKeyInfo in DER (RFC 5280, section 4.1; i2d_PUBKEY(3)). Empty if
  /// libcrypto fails.
  package var publicBytes: [UInt8] {
    var room: UnsafeMutablePointer<UInt8>?
    let count = i2d_PUBKEY(key, &room)
    defer { CRYPTO_free(room, nil, 0) }
    guard count > 0, let room else { return [] }
    return Array(UnsafeBufferPointer(start: room, count: Int(count)))
  }

  /// The default algorithm for keys of this kind.
  package var usualAlgorithm: SignatureAlgorithm {
    switch kind {
    case .ed25519: .ed25519
    case .p256: .ecdsaP256
    case .rsa, .rsaPSS: .rsaPSS
    }
  }

  /// Whether the key can be used with an algorithm.
  package func fits(_ algorithm: SignatureAlgorithm) -> Bool {
    switch (kind, algorithm) {
    case (.ed25519, .ed25519), (.p256, .ecdsaP256), (.rsa, .rsaPSS), (.rsa, .rsaPKCS1), (.rsaPSS, .rsaPSS):
      true
    default: false
    }
  }

  /// Signs a message.
  ///
  /// - Returns: the signature in the form that the case of `SignatureAlgorithm` describes.
  /// - Throws: when the key is public or does not fit the algorithm, or libcrypto fails.
  package func signature(
    of message: [UInt8], _ algorithm: SignatureAlgorithm
  ) throws(CryptoError) -> [UInt8] {
    let operation = "signing with \(algorithm.rawValue)"
    guard isPrivate else { throw CryptoError(operation, "the key is a public key, which can only verify") }
    guard fits(algorithm) else { throw CryptoError(operation, "the key does not fit the algorithm") }
    guard let context = EVP_MD_CTX_new() else { throw CryptoError(failed: operation) }
    defer { EVP_MD_CTX_free(context) }
    var parameters: OpaquePointer?
    guard EVP_DigestSignInit(context, &parameters, Self.digest(algorithm), nil, key) == 1,
      Self.pad(parameters, algorithm)
    else { throw CryptoError(failed: operation) }
    // The size is 0 or less for a key that cannot sign: EVP_PKEY_get_size(3).
    var count = max(Int(EVP_PKEY_get_size(key)), 0)
    var signature = [UInt8](repeating: 0, count: count)
    guard EVP_DigestSign(context, &signature, &count, message, message.count) == 1 else {
      throw CryptoError(failed: operation)
    }
    signature.removeLast(max(signature.count - count, 0))
    return algorithm == .ecdsaP256 ? try Self.raw(signature, operation) : signature
  }

  /// Whether a signature is valid for a message and this key.
  ///
  /// - Throws: when the key does not fit the algorithm, or libcrypto fails. A wrong or malformed signature is
  ///   not an error.
  package func isValidSignature(
    _ signature: [UInt8], of message: [UInt8], _ algorithm: SignatureAlgorithm
  ) throws(CryptoError) -> Bool {
    let operation = "verifying with \(algorithm.rawValue)"
    guard fits(algorithm) else { throw CryptoError(operation, "the key does not fit the algorithm") }
    var signature = signature
    if algorithm == .ecdsaP256 {
      guard let encoded = Self.encoded(signature) else { return false }
      signature = encoded
    }
    guard let context = EVP_MD_CTX_new() else { throw CryptoError(failed: operation) }
    defer { EVP_MD_CTX_free(context) }
    var parameters: OpaquePointer?
    guard EVP_DigestVerifyInit(context, &parameters, Self.digest(algorithm), nil, key) == 1,
      Self.pad(parameters, algorithm)
    else { throw CryptoError(failed: operation) }
    let isValid = EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    // libcrypto records a wrong signature as an error.
    if !isValid { ERR_clear_error() }
    return isValid
  }

  /// Returns the digest to pass to EVP_DigestSignInit(3); `nil` for Ed25519, which takes none.
  private static func digest(_ algorithm: SignatureAlgorithm) -> OpaquePointer? {
    switch algorithm {
    case .ed25519: nil
    case .ecdsaP256, .rsaPKCS1: EVP_sha256()
    case .rsaPSS: EVP_sha512()
    }
  }

  /// Sets the RSA padding that an algorithm requires. Does nothing for the other algorithms.
  ///
  /// - Returns: whether this succeeded.
  private static func pad(_ parameters: OpaquePointer?, _ algorithm: SignatureAlgorithm) -> Bool {
    switch algorithm {
    case .ed25519, .ecdsaP256: true
    case .rsaPKCS1: EVP_PKEY_CTX_set_rsa_padding(parameters, RSA_PKCS1_PADDING) == 1
    case .rsaPSS:
      EVP_PKEY_CTX_set_rsa_padding(parameters, RSA_PKCS1_PSS_PADDING) == 1
        && EVP_PKEY_CTX_set_rsa_pss_saltlen(parameters, RSA_PSS_SALTLEN_DIGEST) == 1
        && EVP_PKEY_CTX_set_rsa_mgf1_md(parameters, EVP_sha512()) == 1
    }
  }

  /// Converts a DER signature to r and s, 32 bytes each: ECDSA_SIG_new(3).
  private static func raw(_ encoded: [UInt8], _ operation: String) throws(CryptoError) -> [UInt8] {
    let pair = encoded.withUnsafeBufferPointer { bytes in
      var start = bytes.baseAddress
      return d2i_ECDSA_SIG(nil, &start, bytes.count)
    }
    guard let pair else { throw CryptoError(failed: operation) }
    defer { ECDSA_SIG_free(pair) }
    var bytes = [UInt8](repeating: 0, count: 64)
    let isDone = bytes.withUnsafeMutableBufferPointer { bytes in
      BN_bn2binpad(ECDSA_SIG_get0_r(pair), bytes.baseAddress, 32) == 32
        && BN_bn2binpad(ECDSA_SIG_get0_s(pair), bytes.baseAddress.map { $0 + 32 }, 32) == 32
    }
    guard isDone else { throw CryptoError(failed: operation) }
    return bytes
  }

  /// Converts r and s to a DER signature; `nil` if they do not have 64 bytes together, or libcrypto fails.
  private static func encoded(_ raw: [UInt8]) -> [UInt8]? {
    guard raw.count == 64, let pair = ECDSA_SIG_new() else { return nil }
    defer { ECDSA_SIG_free(pair) }
    let halves = raw.withUnsafeBufferPointer { bytes in
      (netopt_bn_read(bytes.baseAddress, 32), netopt_bn_read(bytes.baseAddress.map { $0 + 32 }, 32))
    }
    // After a success, `pair` owns both numbers.
    guard let r = halves.0, let s = halves.1, ECDSA_SIG_set0(pair, r, s) == 1 else {
      BN_free(halves.0)
      BN_free(halves.1)
      return nil
    }
    var out: UnsafeMutablePointer<UInt8>?
    let count = i2d_ECDSA_SIG(pair, &out)
    guard count > 0, let out else { return nil }
    defer { CRYPTO_free(out, #file, Int32(#line)) }
    return Array(UnsafeBufferPointer(start: out, count: Int(count)))
  }
}

extension AsymmetricKey: CustomStringConvertible, CustomReflectable {
  /// The kind of the key, without any key material.
  package var description: String { "AsymmetricKey(\(kind))" }
  /// A mirror without children: a dump must not show the key's memory.
  package var customMirror: Mirror { Mirror(self, children: []) }
}
