public import NetOptCore
import NetOptCrypto
import NetOptLocking

/// One way to sign and to verify. Common to all are the order of checks, keys, nonces and the report, which the verifier has.
package protocol SigningScheme: Sendable {
  /// The name.
  var name: SchemeName { get }

  /// Whether it cannot keep a request from being changed or replayed.
  var isWeak: Bool { get }

  /// What of the scheme's options tells its signers apart besides the key. It reveals no secret.
  var identity: String { get }

  /// The keys that it signs with besides the signer's own.
  var keys: [SigningKey] { get }

  /// Signs a request.
  func sign(
    _ request: SigningRequest, with key: SigningKey, at moment: SigningMoment
  ) throws(SigningFault) -> SignedRequest

  /// Reads what a request says of its signature.
  func claim(in request: SigningRequest) throws(SigningFault) -> Claim

  /// The key of a claim; `nil` for an unknown one. A scheme that brings the key along opens it here.
  func key(
    of claim: Claim, _ request: SigningRequest, in ring: KeyRing
  ) throws(SigningFault) -> SigningKey?

  /// Says what has to be signed and is not; `nil` when nothing is missing.
  func coverageFault(_ claim: Claim, _ request: SigningRequest) -> SigningFault?

  /// What is worth saying about coverage although it is sufficient, and whether it makes the verdict a weak one.
  func coverageNote(_ claim: Claim, _ request: SigningRequest) -> (text: String, isWeak: Bool)

  /// Says why the digest that a request carries is not that of its body.
  func bodyFault(_ claim: Claim, _ request: SigningRequest) -> SigningFault?

  /// What was signed, if these mistakes were made.
  func strings(
    _ claim: Claim, _ request: SigningRequest, _ mutations: Mutations
  ) throws(SigningFault) -> SigningStrings

  /// Whether the claim's signature is that of a string under a key.
  func isSignature(
    _ claim: Claim, of string: [UInt8], by key: SigningKey
  ) throws(SigningFault) -> Bool

  /// The signature under a key, as a request carries it; `nil` where only the signer can make it.
  func expectedSignature(of string: [UInt8], _ claim: Claim, by key: SigningKey) -> String?

  /// The mistakes in putting the string together that signers of this scheme make.
  var mutations: [SignerMistake] { get }

  /// Other ways in which the key may have been used, to be tried on one string: each is tested whether it explains the signature.
  func keyCandidates(_ claim: Claim, _ request: SigningRequest, _ key: SigningKey) -> [KeyCandidate]

  /// A key that verifies nothing, to be used for the same time when the right one is not known.
  func decoy(for claim: Claim) -> SigningKey
}

/// A way to use a key, for the diagnosis.
package struct KeyCandidate: Sendable {
  let mutation: SignerMistake
  let detail: String
  /// Whether it explains the signature of a string.
  let explains: @Sendable ([UInt8]) throws(SigningFault) -> Bool
}

extension SigningScheme {
  package var identity: String { "" }
  package var keys: [SigningKey] { [] }

  package var isWeak: Bool { name.isWeak }

  /// Checks whether the scheme is for what is signed: a request or a response.
  func checkKind(of request: SigningRequest) throws(SigningFault) {
    guard request.status == nil || name == .rfc9421 else {
      throw SigningFault(
        .malformedRequest, "\(name.rawValue) signs requests; a response is signed in rfc9421")
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

/// When a request is signed.
package struct SigningMoment: Sendable {
  /// Seconds since 1970.
  package var now: Int64
  /// The nonce; `nil` for one by chance, which it is but for vectors.
  package var nonce: String?

  /// Makes a moment.
  package init(now: Int64, nonce: String? = nil) {
    self.now = now
    self.nonce = nonce
  }
}

/// What a request says of its signature. Nothing of it is true before the signature is verified.
package struct Claim: Sendable {
  /// What only one scheme has.
  enum Parts: Sendable {
    case none
    case sigV4(SigV4.Parts)
    case rfc9421(RFC9421.Parts)
    case sealed(SealedKey.Parts)
  }

  var keyID: String
  /// When it was signed.
  var created: Int64?
  /// Until when it is to be accepted.
  var expires: Int64?
  /// Whether `expires` stands in for the time window, as in a URL that is signed to be used later.
  var outlivesWindow = false
  var nonce: String?
  /// The names of the fields and components that are signed.
  var covered: [String] = []
  var signature: [UInt8]
  var parts = Parts.none

  /// The most names that a signature may cover. Each is looked for among the fields, before the signature is known to be right.
  static let mostCovered = 256
}

/// What is signed.
package struct SigningStrings: Sendable {
  /// What goes into the MAC.
  package var toSign: [UInt8]
  /// What `toSign` has the digest of, where it is not the same.
  package var canonical: [UInt8]?

  init(_ toSign: [UInt8], canonical: [UInt8]? = nil) {
    self.toSign = toSign
    self.canonical = canonical
  }

  /// Where the request stands line by line.
  var lines: [UInt8] { canonical ?? toSign }
}

/// What a signer adds to a request.
public struct SignedRequest: Sendable {
  /// The scheme.
  public let scheme: SchemeName
  /// The id of the key.
  public let keyID: String
  /// The fields to set, in place of those with the same name.
  public let headers: [HeaderField]
  /// The query to send instead, when the signature travels there.
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

/// Random nonces, made many at once: asking libcrypto for each would take longer than signing.
enum NonceSource {
  static let length = 16
  private static let pool = Locked<[UInt8]>([])

  /// 16 bytes in base64url, 22 characters.
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

  /// What `Base64` writes of 16 bytes, without an array in between.
  static func text(of bytes: Slice<UnsafeBufferPointer<UInt8>>) -> String {
    let digits = Base64.urlDigits
    return String(unsafeUninitializedCapacity: 22) { out in
      var end = 0
      var place = bytes.startIndex
      // Five times three bytes, and the last one.
      while end < 20 {
        let bits = UInt32(bytes[place]) << 16 | UInt32(bytes[place + 1]) << 8 | UInt32(bytes[place + 2])
        for digit in 0..<4 { out[end + digit] = digits[Int(bits >> UInt32(18 - 6 * digit) & 63)] }
        place += 3
        end += 4
      }
      out[20] = digits[Int(bytes[place] >> 2)]
      out[21] = digits[Int(bytes[place] << 4 & 63)]
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
