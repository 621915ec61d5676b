public import NetOptCore
import NetOptCrypto
import NetOptLocking

/// A way to sign requests and to verify signatures. A scheme defines the string to sign and the place of the
/// signature in the request. `SignatureVerifier` does what is the same for all schemes: it checks the key and
/// the time, records nonces, and makes the report.
package protocol SigningScheme: Sendable {
  /// The name of the scheme.
  var name: SchemeName { get }

  /// Whether the scheme is weak: an attacker can change signed requests, or replay them at any time. Default:
  /// `SchemeName.isWeak`.
  var isWeak: Bool { get }

  /// The end of `RequestSigner.identity`. The text differs for two signers that have the same scheme and key
  /// but whose responses the cache must keep apart, for example because of different platform keys in
  /// `sealed-key`. The text reveals no secret. Default: an empty text.
  var identity: String { get }

  /// The keys that a signer needs besides the key that signs. A signer in `sealed-key` needs the platform's
  /// key, which encrypts the key that signs. Default: none.
  var additionalKeys: [SigningKey] { get }

  /// Signs a request.
  ///
  /// - Parameters:
  ///   - key: the key that signs.
  ///   - moment: the time of signing, and the nonce if it is given.
  func sign(
    _ request: SigningRequest, with key: SigningKey, at moment: SigningMoment
  ) throws(SigningFault) -> SignedRequest

  /// Reads the statements of a request about its signature.
  ///
  /// - Throws: `noSignature` when the request has no signature in this scheme; `malformedSignature` or
  ///   `malformedRequest` when the signature or the request breaks a rule.
  func claim(in request: SigningRequest) throws(SigningFault) -> Claim

  /// Returns a key of the ring whose limits also apply to a claim: its schemes, validity and scopes. `nil` if
  /// there is none, which is the default.
  func limitingKey(of claim: Claim, in ring: KeyRing) -> SigningKey?

  /// Returns the key that a claim names; `nil` if the ring does not have the key. `sealed-key` decrypts the
  /// key from the request instead. Default: the key of the ring with the id of the claim.
  func key(
    of claim: Claim, _ request: SigningRequest, in ring: KeyRing
  ) throws(SigningFault) -> SigningKey?

  /// Checks that all parts of the request that must be signed are signed, and that all signed parts are in
  /// the request. Returns the first fault; `nil` if there is none.
  func coverageFault(_ claim: Claim, _ request: SigningRequest) -> SigningFault?

  /// Returns a remark for the report about the signed parts, for example that the body is not signed; empty
  /// if there is no remark. The verifier uses the remark when `coverageFault` is `nil`. `isWeak`: whether the
  /// assurance of a valid signature is `weak` because of the remark. Default: no remark.
  func coverageNote(_ claim: Claim, _ request: SigningRequest) -> (text: String, isWeak: Bool)

  /// Compares the body with its digests in the fields of the request. Returns a fault if a digest differs or
  /// cannot be checked; `nil` otherwise. Default: checks the Content-Digest field.
  func bodyFault(_ claim: Claim, _ request: SigningRequest) -> SigningFault?

  /// Returns the string to sign as a signer that makes all the given mistakes builds it. Without mistakes,
  /// the string is the correct one.
  func strings(
    _ claim: Claim, _ request: SigningRequest, _ mistakes: Mistakes
  ) throws(SigningFault) -> SigningStrings

  /// Whether the claim's signature is valid for a string to sign under a key.
  func isValidSignature(
    _ claim: Claim, of string: [UInt8], by key: SigningKey
  ) throws(SigningFault) -> Bool

  /// Computes the signature of a string to sign, in the form in which a request carries it; `nil` if that is
  /// not possible, for example with a public key.
  func expectedSignature(of string: [UInt8], _ claim: Claim, by key: SigningKey) -> String?

  /// The mistakes that signers in this scheme often make when they build the string to sign. The diagnosis of
  /// an invalid signature tries them.
  var mistakes: [SignerMistake] { get }

  /// The wrong ways to use a key that the diagnosis of an invalid signature tries. Default: none.
  func keyCandidates(_ claim: Claim, _ request: SigningRequest, _ key: SigningKey) -> [KeyCandidate]

  /// Returns the key with which the verifier computes in place of an unknown key, so that the refusal of an
  /// unknown key takes as long as the refusal of a wrong signature. The verifier refuses the request even if
  /// the signature is valid under this key. Default: `Decoys.secret`.
  func decoy(for claim: Claim) -> SigningKey
}

/// A wrong way to use a key. The diagnosis tests whether the signer used the key in this way.
package struct KeyCandidate: Sendable {
  /// The mistake that a signer makes when it uses the key in this way.
  let mistake: SignerMistake
  /// The mistake in words, for the report.
  let detail: String
  /// Whether `explains` builds the string to sign itself. Then the string that it gets does not matter.
  var buildsString = false
  /// Whether the signature of the claim is valid for a string to sign if the key is used in this way.
  let explains: @Sendable ([UInt8]) throws(SigningFault) -> Bool
}

extension SigningScheme {
  package var identity: String { "" }
  package var additionalKeys: [SigningKey] { [] }

  package var isWeak: Bool { name.isWeak }

  package func limitingKey(of claim: Claim, in ring: KeyRing) -> SigningKey? { nil }

  /// Refuses a response, unless the scheme is `rfc9421`. The other schemes sign only requests.
  func checkKind(of request: SigningRequest) throws(SigningFault) {
    guard request.status == nil || name == .rfc9421 else {
      throw SigningFault(
        .malformedRequest, "\(name.rawValue) signs only requests; sign a response with rfc9421")
    }
  }

  package func key(
    of claim: Claim, _ request: SigningRequest, in ring: KeyRing
  ) throws(SigningFault) -> SigningKey? { ring[claim.keyID] }

  package func coverageNote(_ claim: Claim, _ request: SigningRequest) -> (text: String, isWeak: Bool) {
    ("", false)
  }

  package func bodyFault(_ claim: Claim, _ request: SigningRequest) -> SigningFault? {
    ContentDigest.fault(in: request)
  }

  package func keyCandidates(_ claim: Claim, _ request: SigningRequest, _ key: SigningKey) -> [KeyCandidate] {
    []
  }

  package func decoy(for claim: Claim) -> SigningKey { Decoys.secret }
}

/// The key that the verifier uses in place of an unknown key. It is no secret, and the verifier refuses every
/// request that it checks with this key.
enum Decoys {
  /// A key with a shared secret, which every scheme may use.
  static let secret = SigningKey(
    id: "decoy", secret: Array("no key of this name is known; this one takes its time".utf8),
    schemes: Set(SchemeName.allCases))
}

/// The time and the nonce of a signature. Each signature has its own, even if one request is signed twice.
package struct SigningMoment: Sendable {
  /// The time of signing, in seconds since 1970.
  package var now: Int64
  /// The nonce to sign with, for test vectors. `nil` lets the scheme make a random nonce, if it uses nonces.
  package var nonce: String?

  /// Makes the time and the nonce of a signature.
  package init(now: Int64, nonce: String? = nil) {
    self.now = now
    self.nonce = nonce
  }
}

/// The statements of a request about its signature. They are not trustworthy until the signature is verified.
package struct Claim: Sendable {
  /// The statements of a signature that only one scheme has; `none` for a scheme without such statements.
  enum Parts: Sendable {
    case none
    case sigV4(SigV4.Parts)
    case rfc9421(RFC9421.Parts)
    case sealed(SealedKey.Parts)
  }

  /// The id of the key; empty if the request names none.
  var keyID: String
  /// The time of signing, in seconds since 1970; `nil` if the request states none.
  var created: Int64?
  /// The last second since 1970 in which the signature is acceptable; `nil` if the request states none.
  var expires: Int64?
  /// Whether the signature may be older than the time window of the verifier. True for a presigned URL, which
  /// is for later use: then only `expires` limits its age.
  var outlivesWindow = false
  /// The nonce; `nil` if the signature has none.
  var nonce: String?
  /// The signed parts: names of fields in lower case, or identifiers of components in `rfc9421`. `salted-md5`
  /// leaves the array empty.
  var covered: [String] = []
  /// The decoded signature.
  var signature: [UInt8]
  /// The statements that only the scheme of the request has.
  var parts = Parts.none

  /// The maximum number of names in `covered`. The limit bounds the work of the verifier, which looks for
  /// each name in the fields before it can check the signature.
  static let mostCovered = 256
}

/// The string to sign and, in some schemes, the canonical request.
package struct SigningStrings: Sendable {
  /// The string to sign: the input of the MAC or of the signature algorithm.
  package var toSign: [UInt8]
  /// The canonical request, whose digest is in `toSign`; `nil` if the scheme has no canonical request.
  package var canonical: [UInt8]?

  init(_ toSign: [UInt8], canonical: [UInt8]? = nil) {
    self.toSign = toSign
    self.canonical = canonical
  }

  /// The string that has one line for each part of the request: the canonical request if there is one,
  /// otherwise the string to sign.
  var requestText: [UInt8] { canonical ?? toSign }
}

/// A signature, and the header fields or the query that carry it. The value does not contain the rest of the
/// request: the caller sets the fields or the query in the request.
public struct SignedRequest: Sendable {
  /// The scheme of the signature.
  public let scheme: SchemeName
  /// The id of the key that signed.
  public let keyID: String
  /// The fields to set in the request. Each field replaces the fields with the same name.
  public let headers: [HeaderField]
  /// The query that replaces the query of the request; `nil` if header fields carry the signature.
  public let query: String?
  /// The signature in the form in which the request carries it.
  public let signature: String
  /// The string that was signed and, in some schemes, the canonical request.
  package let strings: SigningStrings

  init(
    _ scheme: SchemeName, _ keyID: String, headers: [HeaderField], query: String? = nil, signature: String,
    strings: SigningStrings
  ) {
    self.scheme = scheme
    self.keyID = keyID
    self.headers = headers
    self.query = query
    self.signature = signature
    self.strings = strings
  }

  /// The string that was signed.
  public var stringToSign: String { String(decoding: strings.toSign, as: UTF8.self) }
  /// The canonical request, whose digest is in the string to sign; `nil` for schemes without a canonical
  /// request.
  public var canonicalRequest: String? { strings.canonical.map { String(decoding: $0, as: UTF8.self) } }
}

/// Makes random nonces. It takes the bytes from a pool, because asking libcrypto for each nonce would take
/// longer than signing.
enum NonceSource {
  /// The number of random bytes in a nonce.
  static let length = 16
  /// Random bytes from libcrypto that no caller has received yet.
  private static let pool = Locked<[UInt8]>([])

  /// Returns a new nonce: 16 random bytes in base64url, which are 22 characters.
  static func next() throws(SigningFault) -> String {
    let taken = pool.withLock { pool -> String? in
      guard pool.count >= length else { return nil }
      let nonce = pool.withUnsafeBufferPointer { Self.text(of: $0[(pool.count - length)...]) }
      pool.removeLast(length)
      return nonce
    }
    if let taken { return taken }
    return Base64.text(try bytes(length), .url)
  }

  /// Returns the base64url text of 16 bytes. Unlike `Base64`, the function needs no intermediate array.
  static func text(of bytes: Slice<UnsafeBufferPointer<UInt8>>) -> String {
    let digits = Base64.urlDigits
    return String(unsafeUninitializedCapacity: 22) { out in
      var end = 0
      var index = bytes.startIndex
      // Five groups of three bytes, then the last byte.
      while end < 20 {
        let bits = UInt32(bytes[index]) << 16 | UInt32(bytes[index + 1]) << 8 | UInt32(bytes[index + 2])
        for digit in 0..<4 { out[end + digit] = digits[Int(bits >> UInt32(18 - 6 * digit) & 63)] }
        index += 3
        end += 4
      }
      out[20] = digits[Int(bytes[index] >> 2)]
      out[21] = digits[Int(bytes[index] << 4 & 63)]
      return 22
    }
  }

  /// Returns random bytes from the pool. If the pool has too few, asks libcrypto for these bytes and for the
  /// bytes of 256 nonces. The bytes of the nonces go into the pool, unless it already has 64 KiB.
  static func bytes(_ count: Int) throws(SigningFault) -> [UInt8] {
    if let taken = pool.withLock({ take(count, from: &$0) }) { return taken }
    let fresh = try crypto { () throws(CryptoError) in try randomBytes(count + 256 * length) }
    pool.withLock { if $0.count < 64 * 1024 { $0 += fresh.dropFirst(count) } }
    return Array(fresh.prefix(count))
  }

  /// Removes bytes from the end of the pool and returns them; `nil` if the pool has too few.
  private static func take(_ count: Int, from pool: inout [UInt8]) -> [UInt8]? {
    guard pool.count >= count else { return nil }
    let taken = Array(pool.suffix(count))
    pool.removeLast(count)
    return taken
  }
}
