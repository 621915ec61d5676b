package import NetOptCore

/// The result of verifying a request.
public struct VerificationReport: Sendable {
  /// The version of the JSON form of reports.
  public static let schemaVersion = 1

  /// How much a valid signature proves.
  public enum Assurance: String, Hashable, Sendable {
    /// The sender has the key, and nobody changed the signed parts of the request. If the signature has a
    /// nonce and the verifier has a nonce store, the request is not a replay.
    case strong
    /// The scheme, or the choice of the signed parts, allows an attacker to change or replay the request.
    case weak
    /// The request was refused.
    case none
  }

  /// One check of the verifier.
  public struct Check: Hashable, Sendable {
    /// The name of the check. The checks are, in this order, `parse`, `key`, `time`, `coverage`, `body`,
    /// `signature` and `nonce`.
    public let name: String
    /// Whether the check passed.
    public let ok: Bool
    /// The result, in words.
    public let detail: String
  }

  /// The first byte at which two texts differ: the string to sign, the canonical request or the body, as the
  /// verifier has it and as the signer has it.
  public struct Difference: Hashable, Sendable {
    /// The number of the line, counted from 1.
    public let line: Int
    /// The number of the byte in the line, counted from 1.
    public let byte: Int
    /// The whole line in the verifier's string.
    public let ours: String
    /// The whole line in the signer's string.
    public let theirs: String
  }

  /// The mistakes of the signer that explain an invalid signature or a wrong digest of the body. The verifier
  /// never accepts a request because of them.
  public struct NearMiss: Hashable, Sendable {
    /// The mistakes: one, or two that the signer made in one signature.
    public let mistakes: [SignerMistake]
    /// The mistakes in words, for people.
    public let detail: String
    /// Where the string of a signer that makes the mistakes differs from the verifier's string, or where the
    /// bodies differ. `nil` when the mistake is only in the use of the key.
    public let firstDifference: Difference?

    /// The stable code: the raw value of the mistake, or two raw values joined with "+".
    public var code: String { mistakes.map(\.rawValue).joined(separator: "+") }
  }

  /// Whether the request passed all checks, so that the caller may accept it.
  public var isValid: Bool { reason == .ok }
  /// Why the request was accepted or refused.
  public internal(set) var reason: Reason
  /// The scheme in which the verifier verified the request.
  public let scheme: SchemeName
  /// How much the signature proves: `none` if the request was refused.
  public internal(set) var assurance: Assurance
  /// The id of the key that the request names, or the expected id if the request names none; `nil` if the
  /// check `parse` failed.
  public internal(set) var keyID: String?
  /// The checks that were made, in order.
  public internal(set) var checks: [Check]
  /// The time of signing minus the time of verification, in seconds. The value combines the difference of the
  /// two clocks and the age of the request. Negative for a request that was signed in the past; `nil` if the
  /// signature has no time.
  public internal(set) var clockSkew: Int64?
  /// The mistakes that explain an invalid signature or a wrong digest of the body. `nil` if no explanation
  /// was found, or if `SignatureVerifier.Policy.diagnose` is not set.
  public internal(set) var nearMiss: NearMiss?
  /// The string to sign, rebuilt from the request, if `SignatureVerifier.Policy.explain` is set.
  public internal(set) var stringToSign: String?
  /// The canonical request, if `SignatureVerifier.Policy.explain` is set and the scheme signs its digest.
  public internal(set) var canonicalRequest: String?
  /// Where the verifier's string to sign differs from the string in `SignatureVerifier.Expectation`; `nil` if
  /// the two are equal, or if the expectation has no string. A string that seems to be a canonical request is
  /// compared with the canonical request.
  public internal(set) var firstDifference: Difference?
  /// The right signature, if `SignatureVerifier.Policy.showExpected` is set.
  public internal(set) var expectedSignature: String?

  /// Makes a report without checks. Its reason is `ok` until a check fails.
  init(_ scheme: SchemeName) {
    self.scheme = scheme
    reason = .ok
    assurance = .none
    checks = []
    checks.reserveCapacity(7)
  }

  /// Makes the report of a request that could not be read, with the failed check `parse`.
  package init(_ scheme: SchemeName, unread fault: SigningFault) {
    self.init(scheme)
    reason = fault.reason
    checks = [Check(name: "parse", ok: false, detail: fault.detail)]
  }

  /// The detail of the first failed check; empty if no check failed.
  public var detail: String { checks.first { !$0.ok }?.detail ?? "" }
}

extension VerificationReport.Difference {
  /// Returns the first difference between two strings; `nil` when the strings are equal.
  package static func between(_ ours: [UInt8], _ theirs: [UInt8]) -> Self? {
    guard ours != theirs else { return nil }
    let shared = zip(ours, theirs).prefix { $0 == $1 }.count
    let start = ours[..<shared].lastIndex(of: 0x0a).map { $0 + 1 } ?? 0
    func line(_ text: [UInt8]) -> String {
      String(decoding: text[start...].prefix { $0 != 0x0a }, as: UTF8.self)
    }
    return Self(
      line: ours[..<shared].count { $0 == 0x0a } + 1, byte: shared - start + 1, ours: line(ours),
      theirs: line(theirs))
  }

  /// The JSON form (docs/schemas/verify.schema.json).
  package var json: JSONValue {
    [
      "line": .integer(Int64(line)), "byte": .integer(Int64(byte)), "ours": .string(ours),
      "theirs": .string(theirs),
    ]
  }
}

extension VerificationReport {
  /// The JSON form (docs/schemas/verify.schema.json).
  ///
  /// - Parameter id: the `id` of the request in JSON Lines, which the report repeats unchanged; `nil` to
  ///   leave the `id` out.
  package func json(id: JSONValue?) -> JSONValue {
    var json: JSONValue = [:]
    if let id { json.append("id", id) }
    json.append("schema_version", .integer(Int64(Self.schemaVersion)))
    json.append("valid", .bool(isValid))
    json.append("reason", .string(reason.rawValue))
    json.append("scheme", .string(scheme.rawValue))
    json.append("assurance", .string(assurance.rawValue))
    json.append("key_id", .optional(keyID))
    json.append(
      "checks",
      .array(checks.map { ["name": .string($0.name), "ok": .bool($0.ok), "detail": .string($0.detail)] }))
    if let clockSkew { json.append("clock_skew_s", .integer(clockSkew)) }
    if let nearMiss {
      var miss: JSONValue = ["code": .string(nearMiss.code), "detail": .string(nearMiss.detail)]
      if let difference = nearMiss.firstDifference { miss.append("first_difference", difference.json) }
      json.append("near_miss", miss)
    }
    if let firstDifference { json.append("first_difference", firstDifference.json) }
    if let canonicalRequest { json.append("canonical_request", .string(canonicalRequest)) }
    if let stringToSign { json.append("string_to_sign", .string(stringToSign)) }
    if let expectedSignature { json.append("expected_signature", .string(expectedSignature)) }
    return json
  }
}
