package import NetOptCore
import NetOptCrypto

/// The meaning of `Vary` in a response (RFC 9111, section 4.1).
package enum Vary: Hashable, Sendable {
  /// The response does not depend on request fields.
  case nothing
  /// The response depends on these request fields. The names are in lowercase, sorted, and unique.
  case fields([String])
  /// The response fits only the request that fetched it: `Vary` has `*`, a member that is not a field name,
  /// or more than `mostNames` names.
  case everything

  /// The maximum number of names in `Vary`. Real services name fewer than ten fields. With thousands of
  /// names, each use of the entry would take seconds.
  package static let mostNames = 64

  /// Reads `Vary` from the fields of a response.
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

  /// The fields that `Vary` names, with their values in the request.
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

  /// The request fields whose values are lists of case-insensitive names, with optional white space around
  /// them (RFC 9110, section 12.5). `Accept` is missing here, because its parameters may be case-sensitive.
  private static let listed: Set = ["accept-charset", "accept-encoding", "accept-language"]

  /// The maximum length of a value that is kept as text, in bytes. Longer values, which most servers refuse,
  /// are kept as digests.
  private static let mostBytes = 8192

  /// The value of a field in the form in which selectors keep and compare it; `nil` for a missing field.
  ///
  /// - For the fields of `listed`, the form is the text in lowercase, without white space around commas. The
  ///   order of members stays, because servers evaluate it.
  /// - For `Accept`, the form is the text as the client sends it.
  /// - All other fields may carry credentials, and selectors are written to the disk. So the form is a
  ///   SHA-256.
  /// - For every value of more than `mostBytes`, the form is a SHA-256.
  ///
  /// Several lines of a field count as one line with commas between them.
  private static func value(of name: String, in request: HeaderFields) -> String? {
    let values = request.values(of: name)
    guard !values.isEmpty else { return nil }
    let isListed = listed.contains(name)
    let isText = isListed || name == "accept"
    let isShort = FieldText.isShort(values, most: mostBytes)
    if isListed, isShort { return normalized(values).loweredASCII }
    let joined = values.map { FieldText.trimmed($0[...]) }.joined(separator: ", ")
    if isText, isShort { return joined }
    // The digest does not fail here, because TLS and the cache keys already need libcrypto.
    guard let digest = try? Digest.of("netopt vary\0" + joined, .sha256) else { return joined }
    // No field value contains a NUL. So the digest of a long value never equals the text of a short value.
    return (isText ? "\0" : "") + Hex.text(digest)
  }

  /// The members of the lists, without white space around them, joined by commas.
  private static func normalized(_ values: [String]) -> String {
    values.flatMap {
      $0.split(byte: 0x2c, omittingEmpty: false).map(FieldText.trimmed)
    }
    .joined(separator: ",")
  }
}
