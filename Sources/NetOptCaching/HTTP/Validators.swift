package import NetOptCore

/// An entity tag (RFC 9110, section 8.8.3).
package struct EntityTag: Hashable, Sendable {
  /// Whether it begins with `W/`.
  package let isWeak: Bool
  /// The tag without `W/`, including quotes.
  package let opaque: String

  /// The maximum length of a tag in bytes. Real tags have less than a hundred.
  package static let longest = 1024

  /// Reads a tag from a field. It accepts a tag without quotes, because the tag goes back to the server
  /// unchanged. The result is `nil` for these tags:
  ///
  /// - a tag that is not valid UTF-8, because its bytes are lost;
  /// - an empty tag, `*`, a tag with inner quotes, and an unquoted tag with a comma, because `If-None-Match`
  ///   would mean something else;
  /// - a tag of more than `longest` bytes: the server or the protocol may refuse such a long request, and the
  ///   server would seem unreachable.
  package init?(_ text: some StringProtocol) {
    let text = FieldText.trimmed(Substring(text))
    guard !text.isEmpty, text.utf8.count <= Self.longest, !text.unicodeScalars.contains("\u{fffd}") else {
      return nil
    }
    let bytes = text.utf8
    isWeak = bytes.starts(with: "W/".utf8)
    opaque = String(Substring(isWeak ? bytes.dropFirst(2) : bytes))
    let isQuoted = opaque.utf8.count > 1 && opaque.utf8.first == 0x22 && opaque.utf8.last == 0x22
    let inner = isQuoted ? opaque.utf8.dropFirst().dropLast() : opaque.utf8[...]
    guard !opaque.isEmpty, opaque != "*", !inner.contains(0x22), isQuoted || !inner.contains(0x2c) else {
      return nil
    }
  }

  /// Whether both tags have the same bytes, and both or neither are weak. For strong tags this is the strong
  /// comparison (RFC 9110, section 8.8.3.2).
  package static func == (one: EntityTag, other: EntityTag) -> Bool {
    one.isWeak == other.isWeak && one.matches(other)
  }

  /// Whether both tags are equal by the weak comparison, which ignores `W/`.
  package func matches(_ other: EntityTag) -> Bool { opaque.hasSameBytes(as: other.opaque) }

  /// The tag as written in a field.
  package var text: String { isWeak ? "W/" + opaque : opaque }

  /// The weak form of the tag, for decoded content, whose bytes differ from those that the server's tag
  /// identifies.
  package var weakened: String { "W/" + opaque }

  /// The tags in a list; `nil` for `*`.
  static func list(_ values: [String]) -> [EntityTag]? {
    if values.count == 1, FieldText.trimmed(values[0][...]) == "*" { return nil }
    // A tag may contain commas between its quotes.
    return values.flatMap { value in
      var tags: [EntityTag] = []
      var isQuoted = false
      var start = value.startIndex
      for index in value.utf8.indices {
        let byte = value.utf8[index]
        if byte == 0x22 { isQuoted.toggle() }
        if byte == 0x2c, !isQuoted {
          EntityTag(value[start..<index]).map { tags.append($0) }
          start = value.utf8.index(after: index)
        }
      }
      EntityTag(value[start...]).map { tags.append($0) }
      return tags
    }
  }
}

/// The validators of a response.
package struct Validators: Hashable, Sendable {
  /// `ETag`.
  package var entityTag: EntityTag?
  /// `Last-Modified`, as the server wrote it.
  package var lastModified: String?

  /// Reads the validators of a response.
  package init(_ fields: HeaderFields) {
    entityTag = fields["ETag"].flatMap { EntityTag($0) }
    lastModified = fields["Last-Modified"].flatMap { CivilTime(http: $0) == nil ? nil : $0 }
  }

  /// Whether the response has no validator.
  package var isEmpty: Bool { entityTag == nil && lastModified == nil }

  /// The conditional request fields for a revalidation (RFC 9111, section 4.3.1).
  package var conditions: HeaderFields {
    var fields = HeaderFields()
    if let entityTag { fields.append(HeaderField("If-None-Match", entityTag.text)) }
    if let lastModified { fields.append(HeaderField("If-Modified-Since", lastModified)) }
    return fields
  }

  /// Whether a 304 with these fields refers to the response with these validators (section 4.3.4). If both
  /// have a tag, the tags decide. Otherwise both dates must be equal if both are present: a server may have
  /// gone back to an older version. If the 304 has a weak tag and the stored response has none, both dates
  /// must be present. A 304 with an unreadable tag, or with a strong tag that the stored response lacks,
  /// refers to another response.
  ///
  /// - Parameter present: the date in seconds since 1970, for dates with two-digit years.
  package func match(_ notModified: HeaderFields, at present: Int64) -> Bool {
    var mustHaveEqualDates = false
    if let field = notModified["ETag"] {
      guard let theirs = EntityTag(field) else { return false }
      if let entityTag { return theirs.matches(entityTag) }
      guard theirs.isWeak else { return false }
      mustHaveEqualDates = true
    }
    let ours = Self.seconds(lastModified, present)
    let theirs = Self.seconds(notModified["Last-Modified"], present)
    guard let ours, let theirs else { return !mustHaveEqualDates }
    return ours == theirs
  }

  private static func seconds(_ date: String?, _ present: Int64) -> Int64? {
    date.flatMap { CivilTime(http: $0, near: present) }?.seconds
  }
}

/// The conditional fields of a request (RFC 9110, section 13.1).
package struct RequestConditions: Sendable {

  /// Whether the request has a condition that only the origin evaluates.
  package let isForOrigin: Bool
  /// Whether the request has a condition that a cache evaluates.
  package let isForCache: Bool
  private let fields: HeaderFields

  /// Reads the conditions of a request. Nearly all requests have none.
  package init(_ fields: HeaderFields) {
    self.fields = fields
    let first = { (field: HeaderField) in field.name.utf8.first.map { $0 | 0x20 } == 0x69 }
    guard fields.contains(where: first) else {
      (isForOrigin, isForCache) = (false, false)
      return
    }
    isForOrigin = fields.contains(name: "If-Match") || fields.contains(name: "If-Unmodified-Since")
    isForCache = fields.contains(name: "If-None-Match") || fields.contains(name: "If-Modified-Since")
  }

  /// Whether the cache answers the request with 304 from this stored response (RFC 9111, section 4.3.2).
  package func isNotModified(_ entry: CacheEntry) -> Bool {
    guard isForCache, entry.status == 200 else { return false }
    let tags = fields.values(of: "If-None-Match")
    if !tags.isEmpty {
      guard let list = EntityTag.list(tags) else { return true }
      guard let ours = entry.terms.validators.entityTag else { return false }
      return list.contains { $0.matches(ours) }
    }
    let received = entry.received / 1000
    guard let since = fields["If-Modified-Since"].flatMap({ CivilTime(http: $0, near: received) })?.seconds
    else { return false }
    let stored = entry.fields["Last-Modified"] ?? entry.fields["Date"]
    let modified = stored.flatMap { CivilTime(http: $0, near: received) }?.seconds ?? received
    return modified <= since
  }

  /// Whether the cache may answer a range from a stored response (RFC 9110, section 13.1.5). True when the
  /// request has no `If-Range`, or when `If-Range` names the response by a strong tag or by its exact
  /// `Last-Modified`.
  package func allowRange(of entry: CacheEntry) -> Bool {
    guard let range = fields["If-Range"] else { return true }
    if range.utf8.last == 0x22 {
      guard let tag = EntityTag(range), let ours = entry.terms.validators.entityTag else { return false }
      return !tag.isWeak && tag == ours
    }
    return range == entry.terms.validators.lastModified
  }
}
