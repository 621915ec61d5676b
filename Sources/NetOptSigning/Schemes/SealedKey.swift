import NetOptCore
import NetOptCrypto

/// The scheme `sealed-key`. A request carries the key of its caller, encrypted with AES-256-GCM under a key
/// of the platform (the platform's key). It also carries a signature under the caller's key, in another
/// scheme. docs/signing.md defines the scheme byte by byte.
package struct SealedKey: SigningScheme {
  /// The scheme in which the caller's key signs.
  package enum Inner: Sendable {
    case netopt1(NetOpt1)
    case saltedMD5(SaltedMD5)

    /// The scheme, as a value of the protocol.
    var scheme: any SigningScheme {
      switch self {
      case .netopt1(let scheme): scheme
      case .saltedMD5(let scheme): scheme
      }
    }
  }

  /// The decoded content of the X-Netopt-Sealed field. It has no signature: the inner scheme reads the
  /// signature from its own field or parameter.
  struct Parts: Sendable {
    /// The id of the platform's key.
    let platformID: String
    /// The nonce of the encryption, 12 bytes.
    let nonce: [UInt8]
    /// The caller's key, encrypted, followed by the tag of AES-GCM (16 bytes).
    let sealed: [UInt8]
  }

  /// The name of the field that carries the caller's encrypted key.
  static let field = "X-Netopt-Sealed"
  /// The first byte of the decoded field: the version of its format.
  private static let version: UInt8 = 1

  package let name = SchemeName.sealedKey
  package var isWeak: Bool { inner.scheme.isWeak }
  package var additionalKeys: [SigningKey] { platform.map { [$0] } ?? [] }
  package var identity: String {
    "\(inner.scheme.name.rawValue)" + (platform.map { " \($0.id) \($0.fingerprint)" } ?? "")
  }
  /// The scheme in which the caller's key signs.
  package let inner: Inner
  /// The platform's key, with which a signer encrypts the caller's key. A verifier does not use it: the
  /// request names the platform's key, and the verifier finds it in the key ring.
  private let platform: SigningKey?
  /// The nonce of the encryption, 12 bytes, for test vectors; `nil` for random bytes.
  private let sealNonce: [UInt8]?

  /// Makes the scheme.
  ///
  /// - Parameters:
  ///   - inner: the scheme in which the caller's key signs.
  ///   - platform: the platform's key, 32 bytes. A signer needs it. A verifier finds the key by its id
  ///     instead.
  ///   - sealNonce: the nonce of the encryption, 12 bytes that are never used twice; `nil` for random bytes.
  ///     Only test vectors set it.
  package init(_ inner: Inner, platform: SigningKey? = nil, sealNonce: [UInt8]? = nil) {
    self.inner = inner
    self.platform = platform
    self.sealNonce = sealNonce
  }

  /// The additional data of AES-GCM: method LF authority LF path. With `salted-md5` as the inner scheme, the
  /// API is in place of the path. The tag authenticates this data, so the encrypted key is only usable in
  /// requests with the same method, authority and path.
  private func additional(_ request: SigningRequest) -> [UInt8] {
    var out = Array(request.method.utf8)
    out.append(0x0a)
    request.appendAuthority(to: &out)
    out.append(0x0a)
    switch inner {
    case .netopt1: NetOpt1.appendPath(request.path, to: &out, [])
    case .saltedMD5(let scheme):
      if let api = scheme.options.api { out.append(text: api) } else { out += request.path.utf8.dropFirst() }
    }
    return out
  }

  package func sign(
    _ request: SigningRequest, with key: SigningKey, at moment: SigningMoment
  ) throws(SigningFault) -> SignedRequest {
    try request.check()
    guard let platform else {
      throw SigningFault(
        .unknownKey, "sealed-key also needs the platform's key; name it with platform_key_id")
    }
    guard (1...255).contains(platform.id.utf8.count) else {
      throw SigningFault(.malformedSignature, "the platform key's id is longer than 255 bytes")
    }
    if let fault = platform.fault(.sealedKey, request, at: moment.now) { throw fault }
    try checkLegacy(platform)
    let own = try key.secret()
    var nonce = sealNonce ?? []
    if sealNonce == nil { nonce = try NonceSource.bytes(AESGCM.nonceLength) }
    let platformSecret = try platform.secret()
    let sealed = try crypto { () throws(CryptoError) in
      try AESGCM.seal(own, key: platformSecret, nonce: nonce, additional: additional(request))
    }
    let blob = [Self.version, UInt8(platform.id.utf8.count)] + Array(platform.id.utf8) + nonce + sealed
    let caller = Self.caller(key.id, own, platform)
    let signed = try inner.scheme.sign(request, with: caller, at: moment)
    return SignedRequest(
      name, key.id, headers: [HeaderField(Self.field, Base64.text(blob, .url))] + signed.headers,
      query: signed.query, signature: signed.signature, strings: signed.strings)
  }

  /// The caller's key as a `SigningKey`, with the salt, the validity and the scopes of the platform's key.
  private static func caller(_ id: String, _ secret: SecretBytes, _ platform: SigningKey) -> SigningKey {
    SigningKey(
      id: id, source: .secret(.bytes(secret)), salt: platform.salt, schemes: [.sealedKey],
      isLegacy: platform.isLegacy, notBefore: platform.notBefore, notAfter: platform.notAfter,
      scopes: platform.scopes)
  }

  /// Checks that the platform's key permits weak schemes if the inner scheme is weak.
  private func checkLegacy(_ platform: SigningKey) throws(SigningFault) {
    guard isWeak, !platform.isLegacy else { return }
    throw SigningFault(
      .keyNotLegacy, "sealed-key around salted-md5 is weak, and the key \(platform.id) is not marked legacy")
  }

  package func claim(in request: SigningRequest) throws(SigningFault) -> Claim {
    guard let value = try request.onlyValue(of: Self.field) else {
      throw SigningFault(.noSignature, "there is no \(Self.field) field")
    }
    guard let blob = Base64.decode(ByteClass.trimmed(value.utf8), .url) else {
      throw SigningFault(.malformedSignature, "\(Self.field) is not base64url without padding")
    }
    guard blob.first == Self.version else {
      throw SigningFault(.malformedSignature, "\(Self.field) is not of version \(Self.version)")
    }
    let idLength = blob.count > 1 ? Int(blob[1]) : 0
    let least = 2 + idLength + AESGCM.nonceLength + AESGCM.tagLength
    guard idLength > 0, blob.count > least,
      let id = String(validating: blob[2..<(2 + idLength)], as: UTF8.self)
    else { throw SigningFault(.malformedSignature, "\(Self.field) is cut off or names no key") }
    var claim = try inner.scheme.claim(in: request)
    guard !claim.keyID.isEmpty else {
      throw SigningFault(.malformedSignature, "the request does not name the owner of the sealed key")
    }
    let start = 2 + idLength
    claim.parts = .sealed(
      Parts(
        platformID: id, nonce: Array(blob[start..<(start + AESGCM.nonceLength)]),
        sealed: Array(blob[(start + AESGCM.nonceLength)...])))
    return claim
  }

  package func key(
    of claim: Claim, _ request: SigningRequest, in ring: KeyRing
  ) throws(SigningFault) -> SigningKey? {
    guard case .sealed(let parts) = claim.parts else { return nil }
    guard let platform = ring[parts.platformID] else {
      // A known platform key decrypts the sealed key here. An unknown platform key must take as long.
      _ = try open(parts, with: Self.decoyPlatform, request)
      return nil
    }
    guard platform.schemes.contains(.sealedKey) else {
      throw SigningFault(
        .schemeNotAllowed, "the key \(platform.id) is not for sealed-key; see its schemes")
    }
    try checkLegacy(platform)
    guard let own = try open(parts, with: try platform.secret(), request) else {
      throw SigningFault(
        .signatureMismatch,
        "the verifier cannot decrypt the sealed key: it was sealed for another method, host or API, or under another key"
      )
    }
    // `salted-md5` does not sign the caller's id. So if the ring has a key with this id, the sealed key must
    // be that key. The verifier refuses a key that is not for `sealed-key` (`limitingKey`).
    if let known = ring[claim.keyID], known.schemes.contains(.sealedKey), try known.secret() != own {
      throw SigningFault(.signatureMismatch, "the sealed key is not the key \(known.id)")
    }
    return Self.caller(claim.keyID, own, platform)
  }

  /// The caller's key of the ring. Its owner may have ended or limited the key since the platform got it.
  package func limitingKey(of claim: Claim, in ring: KeyRing) -> SigningKey? { ring[claim.keyID] }

  /// Decrypts the caller's key with the secret of the platform's key. Returns `nil` if the caller's key was
  /// encrypted for another method, authority, path or API, or under another key.
  private func open(
    _ parts: Parts, with secret: SecretBytes, _ request: SigningRequest
  ) throws(SigningFault) -> SecretBytes? {
    let additional = additional(request)
    return try crypto { () throws(CryptoError) in
      try AESGCM.open(parts.sealed, key: secret, nonce: parts.nonce, additional: additional)
    }
  }

  /// A key of zero bytes, with which the verifier decrypts when it does not know the platform's key.
  private static let decoyPlatform = SecretBytes(count: AESGCM.keyLength) {
    (_: UnsafeMutableRawBufferPointer) in
  }

  /// A decoy that is made for each claim and is as long as the sealed key. The verifier then derives the MAC
  /// key anew, as it does for a key that it has just decrypted. A decoy for all claims would keep the derived
  /// key, and take less time.
  package func decoy(for claim: Claim) -> SigningKey {
    guard case .sealed(let parts) = claim.parts else { return Decoys.secret }
    let length = max(parts.sealed.count - AESGCM.tagLength, 1)
    return SigningKey(id: "decoy", secret: [UInt8](repeating: 0x78, count: length), schemes: [.sealedKey])
  }

  package func coverageFault(_ claim: Claim, _ request: SigningRequest) -> SigningFault? {
    inner.scheme.coverageFault(claim, request)
  }

  package func coverageNote(_ claim: Claim, _ request: SigningRequest) -> (text: String, isWeak: Bool) {
    let note = inner.scheme.coverageNote(claim, request)
    guard isWeak else { return note }
    return (note.text + "; nor is the caller's id, unless the key ring has it", true)
  }

  package func strings(
    _ claim: Claim, _ request: SigningRequest, _ mistakes: Mistakes
  ) throws(SigningFault) -> SigningStrings { try inner.scheme.strings(claim, request, mistakes) }

  package func isValidSignature(
    _ claim: Claim, of string: [UInt8], by key: SigningKey
  ) throws(SigningFault) -> Bool { try inner.scheme.isValidSignature(claim, of: string, by: key) }

  package func expectedSignature(of string: [UInt8], _ claim: Claim, by key: SigningKey) -> String? {
    inner.scheme.expectedSignature(of: string, claim, by: key)
  }

  package var mistakes: [SignerMistake] { inner.scheme.mistakes }

  package func keyCandidates(
    _ claim: Claim, _ request: SigningRequest, _ key: SigningKey
  ) -> [KeyCandidate] { inner.scheme.keyCandidates(claim, request, key) }
}
