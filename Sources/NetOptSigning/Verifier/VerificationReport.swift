package import NetOptCore

/// What a verifier found out about a request.
public struct VerificationReport: Sendable {
  /// The version of the JSON form.
  public static let schemaVersion = 1

  /// How much a valid signature says.
  public enum Assurance: String, Hashable, Sendable {
    /// The request is from whoever has the key, was not changed, and is not a replay as far as the nonces tell.
    case strong
    /// The scheme, or what was signed, leaves room for changes or replays.
    case weak
    /// It is not valid.
    case none
  }

  /// One thing that was looked at.
  public struct Check: Hashable, Sendable {
    /// The name: `parse`, `key`, `time`, `coverage`, `body`, `signature`, `nonce`.
    public let name: String
    /// Whether it was as it should be.
    public let ok: Bool
    /// What was found, in words.
    public let detail: String
  }

  /// The first place at which two strings differ.
  public struct Difference: Hashable, Sendable {
    /// The line, counted from 1.
    public let line: Int
    /// The byte in the line, counted from 1.
    public let byte: Int
    /// The line as the verifier has it.
    public let ours: String
    /// The line as the signer has it.
    public let theirs: String
  }

  /// The mistake that explains a signature. A request with one is never accepted.
  public struct NearMiss: Hashable, Sendable {
    /// The mistakes: one, or two that were made at once.
    public let mutations: [SignerMistake]
    /// What they mean.
    public let detail: String
    /// Where the strings differ; `nil` when the mistake is in the key.
    public let firstDifference: Difference?

    /// The stable code: that of the mistake, two of them joined with "+".
    public var code: String { mutations.map(\.rawValue).joined(separator: "+") }
  }

  /// Whether the request is to be accepted.
  public var isValid: Bool { reason == .ok }
  /// Why, or why not.
  public internal(set) var reason: Reason
  /// The scheme.
  public let scheme: SchemeName
  /// How much a valid signature says.
  public internal(set) var assurance: Assurance
  /// The id of the key, as the request names it.
  public internal(set) var keyID: String?
  /// What was looked at, in order.
  public internal(set) var checks: [Check]
  /// How far the signer's clock is behind (negative) or ahead, in seconds.
  public internal(set) var clockSkew: Int64?
  /// The mistake that explains the signature, when that was asked for.
  public internal(set) var nearMiss: NearMiss?
  /// The string to sign, rebuilt from the request.
  public internal(set) var stringToSign: String?
  /// The canonical request, where the string to sign has only its digest.
  public internal(set) var canonicalRequest: String?
  /// Where the caller's string differs from the one rebuilt from the request.
  public internal(set) var firstDifference: Difference?
  /// The signature that would be right; in test mode alone.
  public internal(set) var expectedSignature: String?

  init(_ scheme: SchemeName) {
    self.scheme = scheme
    reason = .ok
    assurance = .none
    checks = []
    checks.reserveCapacity(7)
  }

  /// Makes the report of a request that could not be read.
  package init(_ scheme: SchemeName, unread fault: SigningFault) {
    self.init(scheme)
    reason = fault.reason
    checks = [Check(name: "parse", ok: false, detail: fault.detail)]
  }

  /// The detail of the check that failed first.
  public var detail: String { checks.first { !$0.ok }?.detail ?? "" }
}

extension VerificationReport.Difference {
  /// Compares two strings; `nil` when they are the same.
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
  /// - Parameter id: the `id` of the request in JSON Lines, given back as it came.
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
