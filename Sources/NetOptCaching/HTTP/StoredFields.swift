package import NetOptCore

/// Selects the header fields of a response that the cache stores.
package enum StoredFields {
  /// The lowercase names of the fields that the cache never stores. Most describe a connection or a proxy
  /// (RFC 9111, section 3.1). `Set-Cookie` is for one user. If it were stored, all users without credentials
  /// would share the session of this user.
  private static let unstored: Set = [
    "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
    "proxy-authenticate", "proxy-authentication-info", "proxy-authorization", "set-cookie", "set-cookie2",
  ]

  /// The fields to store for a new response.
  ///
  /// - Parameters:
  ///   - fields: the fields of the response.
  ///   - isDecoded: whether the transfer decoded the content.
  ///   - received: when the response was received, in milliseconds since 1970. It becomes the `Date` of a
  ///     response without one (RFC 9110, section 6.6.1).
  package static func stored(
    _ fields: HeaderFields, control: CacheControl, isDecoded: Bool, received: Int64
  ) -> HeaderFields {
    var storable = storableFields(fields, control)
    // In a response with `Transfer-Encoding`, `Content-Length` has no meaning (RFC 9112, section 6.3). As
    // `Transfer-Encoding` is not stored, a stored `Content-Length` would seem valid.
    if fields.contains(name: "Transfer-Encoding") { storable.removeAll { isNamed($0, ["content-length"]) } }
    if !storable.contains(name: "Date") {
      storable.append(HeaderField("Date", CivilTime(seconds: received / 1000).http))
    }
    if isDecoded {
      storable.removeAll { isNamed($0, ["content-encoding", "content-length"]) }
      weaken(&storable)
    }
    return storable
  }

  /// The fields of a stored response after a 304 or a response to HEAD confirmed it (section 3.2).
  ///
  /// - Parameters:
  ///   - newFields: the fields of the 304 or of the response to HEAD.
  ///   - control: the directives in `newFields`.
  package static func updated(_ stored: HeaderFields, with newFields: HeaderFields, control: CacheControl)
    -> HeaderFields
  {
    // These fields describe the stored content, which does not change.
    let kept = ["content-length", "content-encoding", "content-range"]
    var fresh = storableFields(newFields, control)
    fresh.removeAll { isNamed($0, kept) }
    // The stored tag may be weak because the stored content was decoded. So the new tag becomes weak too.
    if stored["ETag"].flatMap({ EntityTag($0) })?.isWeak == true { weaken(&fresh) }
    let names = Set(fresh.map { $0.name.loweredASCII })
    var merged = stored
    // Removes the old `Age` even if the new response has none, because it is no longer true.
    merged.removeAll { names.contains($0.name.loweredASCII) || isNamed($0, ["age"]) }
    merged.append(contentsOf: fresh)
    // `no-cache="…"` in `newFields` may name fields of `stored`. If `newFields` have no `Cache-Control`, the
    // directive in `stored` still applies, and may name fields of `newFields`. Removes the named fields,
    // except those of `terms`.
    let uncached = Set(CacheControl(merged).uncachedFields).subtracting(terms)
    if !uncached.isEmpty { merged.removeAll { uncached.contains($0.name.loweredASCII) } }
    return merged
  }

  /// The lowercase names of the fields that decide whether a stored response may answer, what its body means,
  /// and where it redirects to.
  private static let terms: Set = [
    "age", "cache-control", "content-encoding", "date", "etag", "expires", "last-modified", "location",
    "pragma", "vary",
  ]

  /// Whether the cache would have to drop a field of `terms`, because `Connection` or `no-cache="…"` names
  /// it. Such a response is not stored. Without the field, it would answer more requests than the server
  /// intended. `Connection` must not name these fields (RFC 9110, section 7.6.1), and `no-cache` rarely does.
  /// The result is also true when `Connection` is too long to read.
  package static func dropsCachingTerms(of fields: HeaderFields, _ control: CacheControl) -> Bool {
    FieldText.members(fields.values(of: "Connection")) == nil
      || !terms.isDisjoint(with: dropped(fields, control))
  }

  /// The fields without those of `unstored`, and without those that `Connection` or `no-cache` names.
  private static func storableFields(_ fields: HeaderFields, _ control: CacheControl) -> HeaderFields {
    let dropped = dropped(fields, control).union(unstored)
    var storable = fields
    storable.removeAll { dropped.contains($0.name.loweredASCII) }
    return storable
  }

  /// The field names in `Connection` and `no-cache`, in lowercase.
  private static func dropped(_ fields: HeaderFields, _ control: CacheControl) -> Set<String> {
    Set(FieldText.names(FieldText.members(fields.values(of: "Connection")) ?? []) + control.uncachedFields)
  }

  /// Makes the `ETag` weak.
  private static func weaken(_ fields: inout HeaderFields) {
    guard let tag = fields["ETag"].flatMap({ EntityTag($0) }), !tag.isWeak else { return }
    fields["ETag"] = tag.weakened
  }

  /// Whether a field has one of the given names.
  private static func isNamed(_ field: HeaderField, _ names: [String]) -> Bool {
    names.contains { HeaderFields.equal($0, field.name) }
  }
}
