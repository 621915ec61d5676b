package import NetOptCore

/// An entity tag (RFC 9110, section 8.8.3).
package struct EntityTag: Hashable, Sendable {
  /// Whether the tag begins with `W/`.
  package let isWeak: Bool
  /// The tag without `W/`, with its quotes if it has any.
  package let opaque: String

  /// The maximum length of a tag in bytes. Real tags have less than a hundred bytes.
  package static let longest = 1024

  /// Reads a tag from a field value. It accepts a tag without quotes, because the cache sends the tag back to
  /// the same server unchanged. The result is `nil` for these tags:
  ///
  /// - a tag that was not UTF-8, because its original bytes are lost;
  /// - an empty tag, `*`, a tag with inner quotes, and an unquoted tag with a comma, because they would have
  ///   another meaning in `If-None-Match`;
  /// - a tag of more than `longest` bytes, because the server might refuse a request with it, and would then
  ///   seem unreachable.
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

  /// Whether both tags have the same bytes, including `W/`. For strong tags this is the strong comparison of
  /// RFC 9110, section 8.8.3.2.
  package static func == (one: EntityTag, other: EntityTag) -> Bool {
    one.isWeak == other.isWeak && one.matches(other)
  }

  /// Whether both tags are equal by the weak comparison, which ignores `W/`.
  package func matches(_ other: EntityTag) -> Bool { opaque.hasSameBytes(as: other.opaque) }

  /// The tag as written in a field.
  package var text: String { isWeak ? "W/" + opaque : opaque }

  /// The weak form of the tag. The cache uses it for decoded content, because a strong tag identifies the
  /// bytes of the encoded content.
  package var weakened: String { "W/" + opaque }

  /// The usable tags in the values of `If-None-Match`; `nil` for `*`.
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
  /// `ETag`; `nil` when it is missing or not usable.
  package var entityTag: EntityTag?
  /// `Last-Modified`, as the server wrote it; `nil` when it is missing or not a date.
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

  /// Whether a 304 confirms the stored response that has these validators (section 4.3.4).
  ///
  /// - If the 304 has a tag that is not usable, the result is false.
  /// - If the 304 and the stored response have a tag, the result is whether the tags match.
  /// - If only the 304 has a tag, this tag must be weak, and both responses must have equal dates in
  ///   `Last-Modified`.
  /// - If the 304 has no tag, the dates must be equal if both responses have one. A 304 with an earlier date
  ///   does not confirm the stored response either, because the server may have gone back to an older
  ///   version.
  ///
  /// - Parameters:
  ///   - notModified: the fields of the 304.
  ///   - present: the current time in seconds since 1970. It tells the century of a year with two digits.
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

  /// The date of a field in seconds since 1970; `nil` when the field is missing or not a date.
  private static func seconds(_ date: String?, _ present: Int64) -> Int64? {
    date.flatMap { CivilTime(http: $0, near: present) }?.seconds
  }
}

/// The conditional fields of a request (RFC 9110, section 13.1).
package struct RequestConditions: Sendable {

  /// Whether the request has `If-Match` or `If-Unmodified-Since`, which only the origin evaluates.
  package let isForOrigin: Bool
  /// Whether the request has `If-None-Match` or `If-Modified-Since`, which a cache evaluates.
  package let isForCache: Bool
  /// The header fields of the request.
  private let fields: HeaderFields

  /// Reads the conditions of a request. Returns quickly when no field name begins with "I", as in nearly all
  /// requests.
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

  /// Whether the conditions tell that the caller already has this stored response, so that the cache answers
  /// with 304 (RFC 9111, section 4.3.2).
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
  /// request has no `If-Range`, or when `If-Range` has the strong tag of the response or its exact
  /// `Last-Modified`. Otherwise the whole response answers.
  package func allowRange(of entry: CacheEntry) -> Bool {
    guard let range = fields["If-Range"] else { return true }
    if range.utf8.last == 0x22 {
      guard let tag = EntityTag(range), let ours = entry.terms.validators.entityTag else { return false }
      return !tag.isWeak && tag == ours
    }
    return range == entry.terms.validators.lastModified
  }
}
