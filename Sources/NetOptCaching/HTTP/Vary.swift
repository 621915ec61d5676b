package import NetOptCore
import NetOptCrypto

/// The meaning of `Vary` in a response (RFC 9111, section 4.1).
package enum Vary: Hashable, Sendable {
  /// The response does not depend on request fields.
  case nothing
  /// The response depends on these request fields. The names are in lowercase, sorted, and unique.
  case fields([String])
  /// No other request matches: `Vary` has `*`, a member that is not a field name, or more than `mostNames`
  /// names.
  case everything

  /// The maximum number of names. Real services name fewer than ten. With thousands of names, each use of the
  /// entry would take seconds.
  package static let mostNames = 64

  /// Reads the field.
  package init(_ fields: HeaderFields) {
    let values = fields.values(of: "Vary")
    guard let members = FieldText.members(values) else {
      self = .everything
      return
    }
    let names = FieldText.names(members)
    let distinct = Set(names)
    if distinct.contains("*") || distinct.count > Self.mostNames || names.count < members.count {
      self = .everything
    } else {
      self = distinct.isEmpty ? .nothing : .fields(distinct.sorted())
    }
  }

  /// The request's values of the fields that `Vary` names.
  package func selectors(of request: CacheRequest) -> [CacheEntry.Selector] {
    guard case .fields(let names) = self else { return [] }
    let fields = request.fieldsForVary
    return names.map { CacheEntry.Selector(name: $0, value: Self.value(of: $0, in: fields)) }
  }

  /// Whether the selectors of an entry match a request.
  package static func selects(_ entry: CacheEntry, _ request: CacheRequest) -> Bool {
    if entry.selectors.isEmpty { return true }
    let fields = request.fieldsForVary
    return entry.selectors.allSatisfy {
      $0 == CacheEntry.Selector(name: $0.name, value: value(of: $0.name, in: fields))
    }
  }

  /// The fields whose values are lists of case-insensitive names, with optional white space around them (RFC
  /// 9110, section 12.5). `Accept` is not among them: its parameters may have case-sensitive values.
  private static let listed: Set = ["accept-charset", "accept-encoding", "accept-language"]

  /// The longest values that are compared as texts, in bytes: 8 KiB. Servers refuse longer ones.
  private static let mostBytes = 8192

  /// The value in the form used for comparison. The lines of one field are joined, and otherwise the value
  /// stays as the client sends it. For `listed` fields, the form normalizes white space around commas and the
  /// case of letters. The order of members stays, because servers evaluate it. All other fields except
  /// `Accept` may carry credentials, and selectors are written to the disk, so the form is a SHA-256. So is
  /// the form of values of more than `mostBytes`.
  private static func value(of name: String, in request: HeaderFields) -> String? {
    let values = request.values(of: name)
    guard !values.isEmpty else { return nil }
    let isShort = values.reduce(0) { $0 + $1.utf8.count } <= mostBytes
    if isShort, listed.contains(name) { return normalized(values).loweredASCII }
    let joined = values.map { FieldText.trimmed($0[...]) }.joined(separator: ", ")
    if isShort, name == "accept" { return joined }
    // The digest cannot be missing here: TLS and the cache keys already need libcrypto.
    guard let digest = try? Digest.of("netopt vary\0" + joined, .sha256) else { return joined }
    // No value has a NUL: the digest of a long value is not the text of a short one.
    return (listed.contains(name) || name == "accept" ? "\0" : "") + Hex.text(digest)
  }

  private static func normalized(_ values: [String]) -> String {
    values.flatMap {
      $0.split(byte: 0x2c, omittingEmpty: false).map(FieldText.trimmed)
    }
    .joined(separator: ",")
  }
}
