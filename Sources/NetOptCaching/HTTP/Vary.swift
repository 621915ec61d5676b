package import NetOptCore
import NetOptCrypto

/// What `Vary` says of a response (RFC 9111, section 4.1).
package enum Vary: Hashable, Sendable {
  /// It is the same whatever the request's fields are.
  case nothing
  /// It depends on these fields; in small letters, sorted, each once.
  case fields([String])
  /// It depends on what no request shows.
  case everything

  /// Reads the field.
  package init(_ fields: HTTPFields) {
    let names = FieldText.members(fields.values(of: "Vary"))
    if names.contains("*") {
      self = .everything
    } else {
      self = names.isEmpty ? .nothing : .fields(Set(names.map(\.loweredASCII)).sorted())
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

  /// Fields whose values mean the same in any case of letters (RFC 9110, section 12.5).
  private static let caseless: Set = ["accept", "accept-charset", "accept-encoding", "accept-language"]

  /// A value in the form in which it is compared: lines of one name joined, white space around commas evened out, and in
  /// small letters where the case means nothing. The order of members is kept: servers look at it. What may be a credential is
  /// compared by its digest, since it is written to the disk.
  private static func value(of name: String, in request: HTTPFields) -> String? {
    let values = request.values(of: name)
    guard !values.isEmpty else { return nil }
    let joined = evened(values)
    if caseless.contains(name) { return joined.loweredASCII }
    // Without SHA-256 the client could not have come so far: TLS and keys of the cache need libcrypto as well.
    guard let digest = try? Digest.of("netopt vary\0" + joined, .sha256) else { return joined }
    return Hex.text(digest)
  }

  private static func evened(_ values: [String]) -> String {
    // A comma between quotes separates nothing.
    if values.contains(where: { $0.utf8.contains(0x22) }) { return values.joined(separator: ",") }
    return values.flatMap {
      $0.split(byte: 0x2c, omittingEmpty: false).map(FieldText.trimmed)
    }
    .joined(separator: ",")
  }
}
