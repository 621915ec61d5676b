package import NetOptCore

/// The fields of a response as they are stored.
package enum StoredFields {
  /// Fields that belong to a connection, or to a proxy on it (RFC 9111, section 3.1), and cookies: a server sets one for whom it answered,
  /// and all users without credentials would have his session.
  private static let unstored: Set = [
    "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
    "proxy-authenticate", "proxy-authentication-info", "proxy-authorization", "set-cookie", "set-cookie2",
  ]

  /// The fields to be stored.
  ///
  /// - Parameters:
  ///   - fields: those of the response.
  ///   - isDecoded: whether its content was decoded on the way.
  ///   - received: when it came: milliseconds since 1970. A response without `Date` gets that (RFC 9110, section 6.6.1).
  package static func stored(
    _ fields: HeaderFields, control: CacheControl, isDecoded: Bool, received: Int64
  ) -> HeaderFields {
    var left = left(fields, control)
    // It was not what said where the body ends (RFC 9112, section 6.3), and would have nothing beside it when it is stored.
    if fields.contains(name: "Transfer-Encoding") { left.removeAll { isNamed($0, ["content-length"]) } }
    if !left.contains(name: "Date") {
      left.append(HeaderField("Date", CivilTime(seconds: received / 1000).http))
    }
    if isDecoded {
      left.removeAll { isNamed($0, ["content-encoding", "content-length"]) }
      weaken(&left)
    }
    return left
  }

  /// The fields of a stored response after a 304, or an answer to HEAD, said that it still holds (section 3.2).
  package static func updated(_ stored: HeaderFields, with news: HeaderFields, control: CacheControl)
    -> HeaderFields
  {
    // Of the content that is stored it is known what it is.
    let kept = ["content-length", "content-encoding", "content-range"]
    var fresh = left(news, control)
    fresh.removeAll { isNamed($0, kept) }
    // Content that was decoded has a weak tag.
    if stored["ETag"].flatMap({ EntityTag($0) })?.isWeak == true { weaken(&fresh) }
    let names = Set(fresh.map { $0.name.loweredASCII })
    var merged = stored
    // What it says of its age is told anew or no more.
    merged.removeAll { names.contains($0.name.loweredASCII) || isNamed($0, ["age"]) }
    merged.append(contentsOf: fresh)
    // Also what a Cache-Control names that only one of both has.
    let uncached = Set(CacheControl(merged).uncachedFields).subtracting(terms)
    if !uncached.isEmpty { merged.removeAll { uncached.contains($0.name.loweredASCII) } }
    return merged
  }

  /// What decides when a stored response answers, what its body is, and where it leads.
  private static let terms: Set = [
    "age", "cache-control", "content-encoding", "date", "etag", "expires", "last-modified", "location",
    "pragma", "vary",
  ]

  /// Whether fields would not be stored that decide when the response answers: what is left of it would be given to more requests than it was
  /// meant for. `Connection` must not name them (RFC 9110, section 7.6.1), and `no-cache` hardly does.
  package static func losesTerms(of fields: HeaderFields, _ control: CacheControl) -> Bool {
    FieldText.members(fields.values(of: "Connection")) == nil
      || !terms.isDisjoint(with: dropped(fields, control))
  }

  /// Without the fields that are not stored, those that `Connection` names, and those that `no-cache` names.
  private static func left(_ fields: HeaderFields, _ control: CacheControl) -> HeaderFields {
    let dropped = dropped(fields, control).union(unstored)
    var left = fields
    left.removeAll { dropped.contains($0.name.loweredASCII) }
    return left
  }

  /// The names that `Connection` and `no-cache` have, in small letters.
  private static func dropped(_ fields: HeaderFields, _ control: CacheControl) -> Set<String> {
    Set(FieldText.names(FieldText.members(fields.values(of: "Connection")) ?? []) + control.uncachedFields)
  }

  private static func weaken(_ fields: inout HeaderFields) {
    guard let tag = fields["ETag"].flatMap({ EntityTag($0) }), !tag.isWeak else { return }
    fields["ETag"] = tag.weakened
  }

  private static func isNamed(_ field: HeaderField, _ names: [String]) -> Bool {
    names.contains { HeaderFields.equal($0, field.name) }
  }
}
