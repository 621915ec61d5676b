public import NetOptCore
import NetOptCrypto
import NetOptLocking

/// A way to sign requests and to verify signatures. `SignatureVerifier` has the parts that are the same for
/// all schemes: the order of the checks, the checks of the key, the record of nonces, and the report.
package protocol SigningScheme: Sendable {
  /// The name.
  var name: SchemeName { get }

  /// Whether the scheme cannot prevent changes or replays of a request.
  var isWeak: Bool { get }

  /// A text that `RequestSigner.identity` ends with. Signers with the same key whose cached responses must be
  /// kept apart have different texts. The text reveals no secret. Default: an empty text.
  var identity: String { get }

  /// The keys that a signer needs besides its own key. `sealed-key` needs the platform's key, with which the
  /// scheme encrypts the signer's key. Default: none.
  var additionalKeys: [SigningKey] { get }

  /// Signs a request.
  func sign(
    _ request: SigningRequest, with key: SigningKey, at moment: SigningMoment
  ) throws(SigningFault) -> SignedRequest

  /// Reads what a request states about its signature.
  func claim(in request: SigningRequest) throws(SigningFault) -> Claim

  /// The key for a claim; `nil` if the key is unknown. A scheme whose requests carry the key decrypts it
  /// here.
  func key(
    of claim: Claim, _ request: SigningRequest, in ring: KeyRing
  ) throws(SigningFault) -> SigningKey?

  /// Returns a fault that names a required but unsigned part of the request; `nil` if all required parts are
  /// signed.
  func coverageFault(_ claim: Claim, _ request: SigningRequest) -> SigningFault?

  /// A remark for the report about the signed parts, when all required parts are signed; empty if there is
  /// none. `isWeak`: whether the signed parts make the assurance of a valid signature weak.
  func coverageNote(_ claim: Claim, _ request: SigningRequest) -> (text: String, isWeak: Bool)

  /// Returns why the digest in a request does not match the body; `nil` if the digest matches or the request
  /// has no digest.
  func bodyFault(_ claim: Claim, _ request: SigningRequest) -> SigningFault?

  /// The strings of a signer that makes all the given mistakes. The strings of an empty set are the right
  /// ones.
  func strings(
    _ claim: Claim, _ request: SigningRequest, _ mistakes: Mistakes
  ) throws(SigningFault) -> SigningStrings

  /// Whether the claim's signature is valid for a string and a key.
  func isValidSignature(
    _ claim: Claim, of string: [UInt8], by key: SigningKey
  ) throws(SigningFault) -> Bool

  /// The signature under a key, as a request carries it; `nil` if only the signer can make it.
  func expectedSignature(of string: [UInt8], _ claim: Claim, by key: SigningKey) -> String?

  /// The mistakes that signers of this scheme often make when they build the string to sign.
  var mistakes: [SignerMistake] { get }

  /// Other ways in which the signer may have used the key. The diagnosis tests whether one of them explains
  /// the signature.
  func keyCandidates(_ claim: Claim, _ request: SigningRequest, _ key: SigningKey) -> [KeyCandidate]

  /// A key that verifies nothing. The verifier uses it for an unknown key, so that both cases take the same
  /// time.
  func decoy(for claim: Claim) -> SigningKey
}

/// A wrong way to use a key. The diagnosis tests whether the signer used the key in this way.
package struct KeyCandidate: Sendable {
  /// The mistake of a signer that uses the key in this way.
  let mistake: SignerMistake
  /// The mistake in words, with the details of this use.
  let detail: String
  /// Whether the claim's signature is valid for a string if the key is used in this way.
  let explains: @Sendable ([UInt8]) throws(SigningFault) -> Bool
}

extension SigningScheme {
  package var identity: String { "" }
  package var additionalKeys: [SigningKey] { [] }

  package var isWeak: Bool { name.isWeak }

  /// Checks that the scheme can sign the message. Only `rfc9421` signs responses.
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

/// Keys that verify nothing.
enum Decoys {
  static let secret = SigningKey(
    id: "decoy", secret: Array("no key of this name is known; this one takes its time".utf8),
    schemes: Set(SchemeName.allCases))
}

/// The values that differ between two signatures of the same request: the time and the nonce.
package struct SigningMoment: Sendable {
  /// Seconds since 1970.
  package var now: Int64
  /// The nonce to use in the signature. If `nil`, the scheme makes a random nonce, if it uses nonces.
  package var nonce: String?

  /// Makes the values of a signature.
  package init(now: Int64, nonce: String? = nil) {
    self.now = now
    self.nonce = nonce
  }
}

/// The statements of a request about its signature. The verifier must not trust the statements before the
/// signature is verified.
package struct Claim: Sendable {
  /// The parts of a claim that only one scheme has.
  enum Parts: Sendable {
    case none
    case sigV4(SigV4.Parts)
    case rfc9421(RFC9421.Parts)
    case sealed(SealedKey.Parts)
  }

  var keyID: String
  /// The time of signing, in seconds since 1970.
  var created: Int64?
  /// The last second since 1970 at which the signature is acceptable.
  var expires: Int64?
  /// Whether `expires` replaces the time window, as in a presigned URL, which is for later use.
  var outlivesWindow = false
  var nonce: String?
  /// The names of the fields and components that are signed.
  var covered: [String] = []
  var signature: [UInt8]
  var parts = Parts.none

  /// The most names that a signature may cover. The verifier searches the fields for each name before it
  /// knows whether the signature is right.
  static let mostCovered = 256
}

/// The string to sign and, in some schemes, the canonical request.
package struct SigningStrings: Sendable {
  /// The input of the MAC or of the signature algorithm.
  package var toSign: [UInt8]
  /// The text whose digest is in `toSign`; `nil` if the scheme signs the text itself.
  package var canonical: [UInt8]?

  init(_ toSign: [UInt8], canonical: [UInt8]? = nil) {
    self.toSign = toSign
    self.canonical = canonical
  }

  /// The text with the parts of the request, one on each line: the canonical request if the scheme has one,
  /// otherwise the string to sign.
  var requestText: [UInt8] { canonical ?? toSign }
}

/// A signature, and the header fields or the query that carry the signature. The rest of the request is not
/// included: the signer's caller adds the fields or the query to the request.
public struct SignedRequest: Sendable {
  /// The scheme.
  public let scheme: SchemeName
  /// The id of the key.
  public let keyID: String
  /// The fields to set. Each replaces the fields with the same name.
  public let headers: [HeaderField]
  /// The query to send instead of the request's own; `nil` if header fields carry the signature.
  public let query: String?
  /// The signature as the request carries it.
  public let signature: String
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
  /// The canonical request, for schemes that sign its digest.
  public var canonicalRequest: String? { strings.canonical.map { String(decoding: $0, as: UTF8.self) } }
}

/// Random nonces from a pool: asking libcrypto for each nonce would take longer than signing.
enum NonceSource {
  static let length = 16
  private static let pool = Locked<[UInt8]>([])

  /// A nonce of 16 bytes in base64url, 22 characters.
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

  /// Returns the base64url text of 16 bytes. Unlike `Base64`, it needs no intermediate array.
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

  static func bytes(_ count: Int) throws(SigningFault) -> [UInt8] {
    if let taken = pool.withLock({ take(count, from: &$0) }) { return taken }
    let fresh = try crypto { () throws(CryptoError) in try randomBytes(count + 256 * length) }
    pool.withLock { if $0.count < 64 * 1024 { $0 += fresh.dropFirst(count) } }
    return Array(fresh.prefix(count))
  }

  private static func take(_ count: Int, from pool: inout [UInt8]) -> [UInt8]? {
    guard pool.count >= count else { return nil }
    let taken = Array(pool.suffix(count))
    pool.removeLast(count)
    return taken
  }
}
