import FoundationEssentials
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCrypto

/// Reading of keys in PEM, and signatures with the keys of RFC 9421, appendix B.1.
@Suite struct AsymmetricKeyTests {
  /// Reads a key of RFC 9421, appendix B.1.
  ///
  /// - Parameter name: the name of the key in the RFC, without `test-key-` and `-private` or `-public`.
  private func key(_ name: String, isPrivate: Bool) throws -> AsymmetricKey {
    let pem = try RepositoryFile.bytes(
      "Tests/Vectors/rfc9421/test-key-\(name)-\(isPrivate ? "private" : "public").pem")
    return try AsymmetricKey(pem: SecretBytes(copying: pem), isPrivate: isPrivate)
  }

  @Test(
    "a public key verifies only the unchanged message and signature of its private key",
    arguments: [
      ("ed25519", SignatureAlgorithm.ed25519), ("ecc-p256", .ecdsaP256), ("rsa", .rsaPSS), ("rsa", .rsaPKCS1),
      ("rsa-pss", .rsaPSS),
    ])
  func signatures(_ name: String, _ algorithm: SignatureAlgorithm) throws {
    let pair = try key(name, isPrivate: true)
    let verifying = try key(name, isPrivate: false)
    let message = Array("message".utf8)
    var signature = try pair.signature(of: message, algorithm)
    #expect(try verifying.isValidSignature(signature, of: message, algorithm))
    #expect(try !verifying.isValidSignature(signature, of: message + [0], algorithm))
    #expect(try !verifying.isValidSignature([], of: message, algorithm))
    signature[5] ^= 1
    #expect(try !verifying.isValidSignature(signature, of: message, algorithm))
    if algorithm.isDeterministic {
      #expect(try pair.signature(of: message, algorithm) == pair.signature(of: message, algorithm))
    }
  }

  @Test("a public key does not sign, and does not verify with another kind of algorithm")
  func publicKey() throws {
    let key = try key("ed25519", isPrivate: false)
    #expect(throws: CryptoError.self) { try key.signature(of: [1], .ed25519) }
    #expect(throws: CryptoError.self) { try key.signature(of: [1], .rsaPSS) }
    #expect(throws: CryptoError.self) { try key.isValidSignature([1], of: [1], .ecdsaP256) }
  }

  /// Returns an RSA key of a given size in PEM and PKCS#1 (RFC 8017, appendix A.1). The key cannot sign,
  /// because its factors are not prime. `AsymmetricKey` does not check this when it reads a key.
  private func rsa(bits: Int, isPrivate: Bool) -> SecretBytes {
    let publicPart = number(bits) + element(2, [1, 0, 1])
    // The private exponent, the two primes, and three numbers for the Chinese remainder theorem.
    let rest = [bits] + [Int](repeating: bits / 2, count: 5)
    return isPrivate
      ? pem("RSA PRIVATE KEY", element(2, [0]) + publicPart + rest.flatMap(number))
      : pem("RSA PUBLIC KEY", publicPart)
  }

  /// Returns a field of ASN.1 in DER. Three bytes give its length.
  private func element(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
    [tag, 0x83] + [16, 8, 0].map { UInt8(content.count >> $0 & 255) } + content
  }

  /// Returns a number of this many bits, which are all 1, in DER.
  private func number(_ bits: Int) -> [UInt8] { element(2, [0] + [UInt8](repeating: 255, count: bits / 8)) }

  /// Returns a sequence of fields as a PEM text.
  private func pem(_ label: String, _ fields: [UInt8]) -> SecretBytes {
    let text = Data(element(0x30, fields)).base64EncodedString(options: .lineLength64Characters)
    return SecretBytes(copying: Array("-----BEGIN \(label)-----\n\(text)\n-----END \(label)-----\n".utf8))
  }

  /// The sizes of the numbers of an RSA key of 2048 bits, one of which is too long: exponent, primes, and the
  /// numbers for the Chinese remainder theorem.
  @Test("an RSA key with a number that is longer than its modulus is refused", arguments: 0..<6)
  func longNumbers(_ index: Int) {
    var sizes = [2048] + [Int](repeating: 1024, count: 5)
    sizes[index] = 100_000
    let fields = element(2, [0]) + number(2048) + element(2, [1, 0, 1]) + sizes.flatMap(number)
    let error = #expect(throws: CryptoError.self) {
      try AsymmetricKey(pem: pem("RSA PRIVATE KEY", fields), isPrivate: true)
    }
    #expect(error?.description.contains("2048 to 16384 bits") == true, "\(error?.description ?? "")")
  }

  @Test("an RSA key with a public exponent of more than 256 bits is refused", arguments: [true, false])
  func longExponent(isPrivate: Bool) {
    for (bits, isUsable) in [(248, true), (264, false), (150_000, false)] {
      let publicPart = number(2048) + number(bits)
      let rest = ([2048] + [Int](repeating: 1024, count: 5)).flatMap(number)
      let text =
        isPrivate
        ? pem("RSA PRIVATE KEY", element(2, [0]) + publicPart + rest) : pem("RSA PUBLIC KEY", publicPart)
      #expect(((try? AsymmetricKey(pem: text, isPrivate: isPrivate)) != nil) == isUsable, "\(bits)")
    }
  }

  /// libcrypto would compute the public half of such a key for minutes. The key has the general form (RFC
  /// 5958), and the parameters contain the identifiers of the supported types.
  @Test("a key of another type is refused without being decoded", .timeLimit(.minutes(1)))
  func otherTypes() {
    let dsa: [UInt8] = [0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x38, 0x04, 0x01]
    let diffieHellman: [UInt8] = [0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x03, 0x01]
    let rsa: [UInt8] = [0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01]
    for type in [dsa, diffieHellman] {
      let parameters = element(0x30, number(80_000) + number(256) + number(79_000))
      for decoy in [[], rsa, [0x06, 0x03, 0x2b, 0x65, 0x70]] {
        let fields =
          element(2, [0]) + element(0x30, type + parameters) + element(4, number(30_000)) + element(4, decoy)
        let error = #expect(throws: CryptoError.self) {
          try AsymmetricKey(pem: pem("PRIVATE KEY", fields), isPrivate: true)
        }
        #expect(error?.description.contains("no key of Ed25519, P-256 or RSA") == true)
      }
    }
  }

  @Test("the name of a curve may precede a key in the form of RFC 5915")
  func curveNames() throws {
    let key = try RepositoryFile.bytes("Tests/Vectors/rfc9421/test-key-ecc-p256-private.pem")
    let name = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"
    let both = SecretBytes(copying: Array(name.utf8) + key)
    #expect(try AsymmetricKey(pem: both, isPrivate: true).kind == .p256)
  }

  @Test("RSA keys of 2048 to 16384 bits are read, and other sizes are refused", arguments: [true, false])
  func sizesOfRSA(isPrivate: Bool) throws {
    for bits in [2048, 16_384] {
      #expect(
        try AsymmetricKey(pem: rsa(bits: bits, isPrivate: isPrivate), isPrivate: isPrivate).kind == .rsa)
    }
    for bits in [2040, 16_392, 32_768] {
      let error = #expect(throws: CryptoError.self) {
        try AsymmetricKey(pem: rsa(bits: bits, isPrivate: isPrivate), isPrivate: isPrivate)
      }
      #expect(error?.description.contains("2048 to 16384 bits") == true, "\(error?.description ?? "")")
    }
  }

  /// libcrypto takes memory for each prime of an RSA key before it reports the size of the key.
  @Test("a text of more than 32 KiB is refused before it is read", arguments: [true, false])
  func longTexts(isPrivate: Bool) {
    let error = #expect(throws: CryptoError.self) {
      try AsymmetricKey(pem: rsa(bits: 262_144, isPrivate: isPrivate), isPrivate: isPrivate)
    }
    #expect(error?.description.contains("more than 32 KiB") == true, "\(error?.description ?? "")")
  }

  @Test(
    "text that is not a key is refused",
    arguments: ["", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "nonsense"])
  func invalidKeys(_ text: String) {
    for isPrivate in [true, false] {
      #expect(throws: CryptoError.self) {
        try AsymmetricKey(pem: SecretBytes(copying: Array(text.utf8)), isPrivate: isPrivate)
      }
    }
  }
}

@Suite struct AESGCMTests {
  // The key and the nonce of the test cases in the specification of GCM.
  private let key = SecretBytes(copying: [UInt8](repeating: 0, count: 32))
  private let nonce = [UInt8](repeating: 0, count: 12)

  /// Test cases 13 and 14 of the specification of GCM (McGrew, Viega 2004): no message, and 16 bytes of zero.
  /// A sealed message is the ciphertext followed by the tag.
  @Test("sealed messages equal the vectors of the GCM specification")
  func publishedVectors() throws {
    let empty = try AESGCM.seal(SecretBytes(copying: []), key: key, nonce: nonce, additional: [])
    #expect(empty == hex("530f8afbc74536b9a963b4f1c4cb738b"))
    let zeros = try AESGCM.seal(
      SecretBytes(copying: [UInt8](repeating: 0, count: 16)), key: key, nonce: nonce, additional: [])
    #expect(zeros == hex("cea7403d4d606b6e074ec5d3baf39d18 d0d1c8a799996bf0265b98b5d48ab919"))
  }

  @Test("a sealed message opens only unchanged and with the same additional data")
  func changedMessage() throws {
    let message = SecretBytes(copying: Array("secret".utf8))
    let sealed = try AESGCM.seal(message, key: key, nonce: nonce, additional: [1, 2])
    #expect(try AESGCM.open(sealed, key: key, nonce: nonce, additional: [1, 2]) == message)
    #expect(try AESGCM.open(sealed, key: key, nonce: nonce, additional: [1]) == nil)
    for index in sealed.indices {
      var changed = sealed
      changed[index] ^= 1
      #expect(try AESGCM.open(changed, key: key, nonce: nonce, additional: [1, 2]) == nil)
    }
    #expect(try AESGCM.open([1], key: key, nonce: nonce, additional: []) == nil)
    #expect(throws: CryptoError.self) {
      try AESGCM.open(sealed, key: SecretBytes(copying: [1]), nonce: nonce, additional: [])
    }
    #expect(throws: CryptoError.self) { try AESGCM.seal(message, key: key, nonce: [1], additional: []) }
  }
}
