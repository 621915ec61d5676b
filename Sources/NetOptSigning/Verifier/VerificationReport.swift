package import NetOptCore

/// The result of verifying a request.
public struct VerificationReport: Sendable {
  /// The version of the JSON form.
  public static let schemaVersion = 1

  /// How much a valid signature proves.
  public enum Assurance: String, Hashable, Sendable {
    /// The sender has the key, nobody changed the request, and it is not a replay as far as the nonces show.
    case strong
    /// The scheme, or the choice of signed parts, allows changes or replays.
    case weak
    /// The signature is not valid.
    case none
  }

  /// One check of the verifier.
  public struct Check: Hashable, Sendable {
    /// The name: `parse`, `key`, `time`, `coverage`, `body`, `signature`, `nonce`.
    public let name: String
    /// Whether the check passed.
    public let ok: Bool
    /// The result, in words.
    public let detail: String
  }

  /// The first position at which two strings differ.
  public struct Difference: Hashable, Sendable {
    /// The line, counted from 1.
    public let line: Int
    /// The byte in the line, counted from 1.
    public let byte: Int
    /// The line in the verifier's string.
    public let ours: String
    /// The line in the signer's string.
    public let theirs: String
  }

  /// The mistake that explains a signature. The verifier never accepts a request with a mistake.
  public struct NearMiss: Hashable, Sendable {
    /// The mistakes: one, or two that the signer made at once.
    public let mutations: [SignerMistake]
    /// The meaning of the mistakes.
    public let detail: String
    /// Where the strings differ; `nil` when the mistake is only in the use of the key.
    public let firstDifference: Difference?

    /// The stable code: the raw value of the mistake, or two raw values joined with "+".
    public var code: String { mutations.map(\.rawValue).joined(separator: "+") }
  }

  /// Whether to accept the request.
  public var isValid: Bool { reason == .ok }
  /// Why the request was accepted or refused.
  public internal(set) var reason: Reason
  /// The scheme.
  public let scheme: SchemeName
  /// How much the signature proves.
  public internal(set) var assurance: Assurance
  /// The id of the key that the request names, or the expected id if the request names none.
  public internal(set) var keyID: String?
  /// The checks, in order.
  public internal(set) var checks: [Check]
  /// How far the signer's clock is ahead (positive) or behind (negative), in seconds. Includes the age of the
  /// request.
  public internal(set) var clockSkew: Int64?
  /// The mistake that explains the signature, if `SignatureVerifier.Policy.diagnose` is set.
  public internal(set) var nearMiss: NearMiss?
  /// The string to sign, rebuilt from the request, if `SignatureVerifier.Policy.explain` is set.
  public internal(set) var stringToSign: String?
  /// The canonical request, if `SignatureVerifier.Policy.explain` is set and the scheme signs its digest.
  public internal(set) var canonicalRequest: String?
  /// Where the caller's string to sign differs from the string that the verifier rebuilt from the request.
  public internal(set) var firstDifference: Difference?
  /// The right signature, if `SignatureVerifier.Policy.showExpected` is set.
  public internal(set) var expectedSignature: String?

  init(_ scheme: SchemeName) {
    self.scheme = scheme
    reason = .ok
    assurance = .none
    checks = []
    checks.reserveCapacity(7)
  }

  /// Makes the report for a request that could not be read.
  package init(_ scheme: SchemeName, unread fault: SigningFault) {
    self.init(scheme)
    reason = fault.reason
    checks = [Check(name: "parse", ok: false, detail: fault.detail)]
  }

  /// The detail of the first failed check; empty if no check failed.
  public var detail: String { checks.first { !$0.ok }?.detail ?? "" }
}

extension VerificationReport.Difference {
  /// Returns the first difference between two strings; `nil` when they are equal.
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
  /// - Parameter id: the `id` of the request in JSON Lines, which the report repeats unchanged.
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
