import NetOptCrypto

/// Public keys whose private keys were thrown away. When the key of a signature is unknown, the verifier
/// verifies with one of these keys. The verification then takes as long as with a known key, so its duration
/// does not show whether a key exists.
enum DecoyPairs {
  /// Returns a key with which the verification of a signature takes as long as with a known key: a public key
  /// for an algorithm of key pairs, or the shared secret `Decoys.secret` for an HMAC.
  ///
  /// - Parameters:
  ///   - algorithm: the algorithm of the signature. `nil` if it is unknown: then the length decides.
  ///   - length: the length of the signature in bytes.
  static func key(_ algorithm: RFC9421.Algorithm?, signatureLength length: Int) -> SigningKey {
    switch algorithm {
    case .hmacSHA256: return Decoys.secret
    case .pair(.ed25519): return ed25519 ?? Decoys.secret
    case .pair(.ecdsaP256): return p256 ?? Decoys.secret
    case .pair: return rsa ?? Decoys.secret
    case nil: break
    }
    // Signatures with Ed25519 and with P-256 both have 64 bytes. The decoy is for P-256, because P-256 takes
    // longer to verify.
    if length == 64 { return p256 ?? Decoys.secret }
    return length >= 256 ? rsa ?? Decoys.secret : Decoys.secret
  }

  /// The public key for Ed25519; `nil` if libcrypto cannot read it.
  private static let ed25519 = key(
    """
    -----BEGIN PUBLIC KEY-----
    MCowBQYDK2VwAyEAqS1wjpzwsIFKMZ1dPOfeX1Dmch7vdPxSfuMvbBXJ7JE=
    -----END PUBLIC KEY-----
    """)
  /// The public key for ECDSA on P-256; `nil` if libcrypto cannot read it.
  private static let p256 = key(
    """
    -----BEGIN PUBLIC KEY-----
    MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE50DiEodqBuBcl+61QV/lSVtmtazU
    V56o2zANu4DLNb8chlOdqaPc/g3xicojNwCz/XTJFY6mVx+EGOzyRvQV0A==
    -----END PUBLIC KEY-----
    """)
  /// The public key for both RSA algorithms, with 2048 bits; `nil` if libcrypto cannot read it.
  private static let rsa = key(
    """
    -----BEGIN PUBLIC KEY-----
    MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAmkCbOZ2h9PBwSGSV5zYZ
    DkEjYAJgqMRgtgYP9TetnSiBUPZ5fpu1YDN2ByN/XXq6vkapiJxDONgub914zYIJ
    33XNQ39VRNSDuglqdKQimg2vA80VbRwzxnbR423wduonwE2+dQq+F6RJYRjSICiP
    /VKXwHwcEgflkOcV0uWQXqKmiJZler2GTOFEv0dkOtMzSYSmKJ9U2CgvKEbcus3M
    nEmHwcFFxo/swwS4CZ7lQDUDX1wyc1wKmnwdEA/MMk/b2cxtax24udQCwURK9nJ5
    c7j4zaY/FzZaWYwbnj1I86fbXT4coE1aYbvsZotR9KvhKQPyry7wD2T2zaZmUw0k
    2QIDAQAB
    -----END PUBLIC KEY-----
    """)

  /// Reads a public key in PEM; `nil` if libcrypto cannot read it.
  private static func key(_ pem: String) -> SigningKey? {
    let text = SecretBytes(copying: Array(pem.utf8))
    guard let pair = try? AsymmetricKey(pem: text, isPrivate: false) else { return nil }
    return SigningKey(id: "decoy", source: .pair(pair), schemes: [.rfc9421])
  }
}
