import FoundationEssentials
package import NetOptCore
package import NetOptCrypto

/// A minisign secret key, which signs files.
package struct MinisignSecretKey: Sendable {
  /// The maximum number of operations for deriving the decryption key from a password. minisign's own keys
  /// need 2^25. Without a limit, a key file from elsewhere could keep the processor busy for hours.
  private static let operationsLimit: UInt64 = 1 << 27
  /// The maximum memory in bytes for deriving the decryption key from a password. minisign's own keys need 1
  /// GiB.
  private static let memoryLimit: UInt64 = 2 << 30
  /// The length of the decoded second line of a key file, in bytes.
  private static let length = 158

  /// The key id, 8 bytes.
  private let idBytes: [UInt8]
  /// The Ed25519 key that makes the signatures.
  private let key: Ed25519.PrivateKey

  /// The public key that verifies the signatures of this key.
  package var publicKey: MinisignPublicKey {
    MinisignPublicKey(idBytes: idBytes, key: key.publicKey.bytes)
  }

  /// Reads a secret key file.
  ///
  /// - Parameters:
  ///   - file: the name of the file in messages.
  ///   - password: returns the password; called only when the key is encrypted. For a key that minisign made,
  ///     the decryption takes about a second and 1 GiB of memory.
  /// - Throws: `invalidKey`, also for a wrong password; any error of `password`.
  package init(
    _ bytes: [UInt8], file: String, password: () throws(NetOptError) -> SecretBytes
  ) throws(NetOptError) {
    let text = try MinisignText(bytes, file: file, code: .invalidKey)
    try text.expect(2, "a minisign secret key")
    _ = try text.comment(0, after: MinisignText.untrusted)
    let body = try text.base64(1, count: Self.length, "a minisign secret key")
    guard body.starts(with: MinisignText.ed25519), body[4..<6].elementsEqual("B2".utf8) else {
      throw text.fault("it is not of a kind that minisign supports")
    }
    let isEncrypted = body[2..<4].elementsEqual("Sc".utf8)
    guard isEncrypted || body[2..<4].elementsEqual([0, 0]) else {
      throw text.fault("the key has an encryption that minisign does not support")
    }
    // Invalid parameters must lead to an error before `password` asks the user.
    let scrypt = try isEncrypted ? Self.scrypt(body, text) : nil
    (idBytes, key) = try withListErrors {
      // In `secret`: the key id (8 bytes), the seed (32), the public key (32), and a checksum (32).
      let secret =
        try scrypt.map { try Self.decrypted(body, by: $0, with: password(), text) }
        ?? SecretBytes(copying: Array(body[54...]))
      let key = try Ed25519.PrivateKey(seed: secret.part(8..<40))
      guard secret.part(40..<72) == SecretBytes(copying: key.publicKey.bytes) else {
        throw text.fault("the key is damaged: its two halves do not match")
      }
      return (secret.withUnsafeBytes { Array($0[..<8]) }, key)
    }
  }

  /// Signs a file.
  ///
  /// - Parameters:
  ///   - content: the bytes of the file.
  ///   - algorithm: `legacy` only for programs that cannot verify `prehashed`, such as minisign before
  ///     version 0.6.
  ///   - untrustedComment: the comment in the first line of the signature file, which anyone can change.
  ///   - trustedComment: the comment that the signature also covers.
  /// - Throws: `invalidRequest` for a comment that is not one line of at most 4,096 bytes.
  package func signature(
    of content: [UInt8], _ algorithm: MinisignSignature.Algorithm = .prehashed, untrustedComment: String,
    trustedComment: String
  ) throws(NetOptError) -> MinisignSignature {
    for comment in [untrustedComment, trustedComment] {
      let isLine = comment.unicodeScalars.allSatisfy {
        $0 == "\t" || $0.properties.generalCategory != .control
      }
      guard isLine, comment.utf8.count <= 4096 else {
        throw NetOptError(
          .invalidRequest, phase: .list,
          "a comment must be one line of at most 4096 bytes without control characters")
      }
    }
    return try withListErrors {
      let message = try algorithm == .prehashed ? Digest.of(content, .blake2b512) : content
      let signature = try key.signature(of: message)
      return MinisignSignature(
        algorithm, keyID: idBytes, signature: signature, untrustedComment: untrustedComment,
        trustedComment: trustedComment,
        commentSignature: try key.signature(of: signature + Array(trustedComment.utf8)))
    }
  }

  /// Reads and checks the scrypt parameters of an encrypted key.
  ///
  /// - Parameters:
  ///   - body: the decoded second line of the key file.
  ///   - text: the key file, for the messages of errors.
  private static func scrypt(_ body: [UInt8], _ text: MinisignText) throws(NetOptError) -> Scrypt {
    let operations = number(body, 38)
    let memory = number(body, 46)
    guard operations <= operationsLimit, memory <= memoryLimit else {
      throw text.fault(
        "its password check takes \(operations) operations and \(memory >> 20) MiB of memory, but the limits are \(operationsLimit) operations and \(memoryLimit >> 20) MiB; minisign's own keys take 33554432 operations and 1024 MiB"
      )
    }
    let scrypt = Scrypt(operations: operations, memory: memory)
    guard let scrypt else { throw text.fault("the scrypt parameters of its password are invalid") }
    return scrypt
  }

  /// Decrypts the secret part of the key. Its checksum shows whether the password was right.
  ///
  /// - Parameters:
  ///   - body: the decoded second line of the key file.
  ///   - scrypt: the parameters that derive the decryption key from the password.
  ///   - text: the key file, for the messages of errors.
  /// - Returns: the decrypted part: key id, seed, public key and checksum, 104 bytes.
  private static func decrypted(
    _ body: [UInt8], by scrypt: Scrypt, with password: SecretBytes, _ text: MinisignText
  ) throws -> SecretBytes {
    let stream = try scrypt.key(
      from: password, salt: Array(body[6..<38]), length: 104, memoryLimit: memoryLimit)
    let secret = stream.withSpan { stream in
      SecretBytes(count: 104) { memory in
        for index in 0..<104 { memory[index] = body[54 + index] ^ stream[index] }
      }
    }
    let checked = SecretBytes(count: 74) { memory in
      memory.copyBytes(from: body[..<2])
      secret.withUnsafeBytes {
        UnsafeMutableRawBufferPointer(rebasing: memory[2...]).copyMemory(
          from: UnsafeRawBufferPointer(rebasing: $0[..<72]))
      }
    }
    let checksum = checked.withSpan { BLAKE2b.digest(of: $0, length: 32) }
    guard secret.part(72..<104) == SecretBytes(copying: checksum) else {
      throw text.fault("the password is wrong, or the key is damaged")
    }
    return secret
  }

  /// Reads a little-endian number of 8 bytes, which begins at the index `start`.
  private static func number(_ bytes: [UInt8], _ start: Int) -> UInt64 {
    bytes[start..<start + 8].reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }
}

extension Scrypt {
  /// Computes the scrypt parameters from the two limits in a minisign key, as libsodium does
  /// (`crypto_pwhash_scryptsalsa208sha256`). `nil` for limits that libsodium cannot use.
  ///
  /// - Parameters:
  ///   - operations: the maximum number of operations.
  ///   - memory: the maximum memory in bytes.
  fileprivate init?(operations: UInt64, memory: UInt64) {
    let operations = max(operations, 32_768)
    guard memory >= 1 << 16 else { return nil }
    let blockSize: UInt64 = 8
    /// The exponent of the largest power of two that is not greater than `most`; at least 1.
    func exponent(_ most: UInt64) -> UInt64 {
      (1..<63).first { UInt64(1) << $0 > most / 2 } ?? 63
    }
    if operations < memory / 32 {
      self.init(
        cost: 1 << exponent(operations / (blockSize * 4)), blockSize: blockSize, parallelism: 1)
    } else {
      let exponent = exponent(memory / (blockSize * 128))
      let product = min((operations / 4) >> exponent, 0x3fff_ffff)
      self.init(cost: 1 << exponent, blockSize: blockSize, parallelism: product / blockSize)
    }
  }
}
