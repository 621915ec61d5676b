package import NetOptCore
import NetOptCrypto

/// What `Vary` says of a response (RFC 9111, section 4.1).
package enum Vary: Hashable, Sendable {
  /// It is the same whatever the request's fields are.
  case nothing
  /// It depends on these fields; in small letters, sorted, each once.
  case fields([String])
  /// It depends on what no request shows, on what is no field, or on more than `mostNames` fields.
  case everything

  /// Real services name fewer than ten. With thousands, each use of the entry would take seconds.
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

  /// The values that a request has in the fields.
  package func selectors(of request: CacheRequest) -> [CacheEntry.Selector] {
    guard case .fields(let names) = self else { return [] }
    let fields = request.selecting
    return names.map { CacheEntry.Selector(name: $0, value: Self.value(of: $0, in: fields)) }
  }

  /// Whether an entry was stored for such a request.
  package static func selects(_ entry: CacheEntry, _ request: CacheRequest) -> Bool {
    if entry.selectors.isEmpty { return true }
    let fields = request.selecting
    return entry.selectors.allSatisfy {
      $0 == CacheEntry.Selector(name: $0.name, value: value(of: $0.name, in: fields))
    }
  }

  /// Fields whose values are lists of names that mean the same in any case, with spaces around them or without (RFC 9110, section 12.5). Those in
  /// `Accept` have parameters, whose values may mean something else in another case.
  private static let listed: Set = ["accept-charset", "accept-encoding", "accept-language"]

  /// A value in the form in which it is compared: lines of one name joined, and as the client sends it otherwise. Of `listed` fields white
  /// space around commas is evened out, and the case of letters. The order of members is kept: servers look at it. What may be a credential is
  /// compared by its digest, since it is written to the disk.
  private static func value(of name: String, in request: HeaderFields) -> String? {
    let values = request.values(of: name)
    guard !values.isEmpty else { return nil }
    if listed.contains(name) { return evened(values).loweredASCII }
    let joined = values.map { FieldText.trimmed($0[...]) }.joined(separator: ", ")
    if name == "accept" { return joined }
    // Without SHA-256 the client could not have come so far: TLS and keys of the cache need libcrypto as well.
    guard let digest = try? Digest.of("netopt vary\0" + joined, .sha256) else { return joined }
    return Hex.text(digest)
  }

  private static func evened(_ values: [String]) -> String {
    values.flatMap {
      $0.split(byte: 0x2c, omittingEmpty: false).map(FieldText.trimmed)
    }
    .joined(separator: ",")
  }
}
