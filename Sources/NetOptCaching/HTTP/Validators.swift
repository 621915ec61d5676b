package import NetOptCore

/// An entity tag (RFC 9110, section 8.8.3).
package struct EntityTag: Hashable, Sendable {
  /// Whether it begins with `W/`.
  package let isWeak: Bool
  /// The rest, quotes included.
  package let opaque: String

  /// The longest tag that is used, in bytes. Real ones have less than a hundred.
  package static let longest = 1024

  /// Reads a tag as it stands in a field. One without quotes is taken as it is: it is handed back to the server as it came. The result is `nil` for a
  /// tag that is not valid UTF-8, because its bytes are lost, for one such as `*`, which means something else in `If-None-Match`, and for one of more
  /// than `longest` bytes: a server may refuse a request that is so long, or the protocol, and would be taken for out of reach.
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

  /// Whether both are the same by the strong comparison (RFC 9110, section 8.8.3.2), but for being strong.
  package static func == (one: EntityTag, other: EntityTag) -> Bool {
    one.isWeak == other.isWeak && one.matches(other)
  }

  /// Whether both are the same by the weak comparison: the bytes behind `W/` are.
  package func matches(_ other: EntityTag) -> Bool { opaque.hasSameBytes(as: other.opaque) }

  /// The tag as it is written.
  package var text: String { isWeak ? "W/" + opaque : opaque }

  /// The tag for content that was decoded, which is not byte for byte what the server's tag stands for.
  package var weakened: String { "W/" + opaque }

  /// The tags of a list, `nil` for `*`.
  static func list(_ values: [String]) -> [EntityTag]? {
    if values.count == 1, FieldText.trimmed(values[0][...]) == "*" { return nil }
    // Tags may have commas between their quotes.
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

/// What a response can be validated with.
package struct Validators: Hashable, Sendable {
  /// `ETag`.
  package var entityTag: EntityTag?
  /// `Last-Modified`, as it was written.
  package var lastModified: String?

  /// Reads them from a response.
  package init(_ fields: HeaderFields) {
    entityTag = fields["ETag"].flatMap { EntityTag($0) }
    lastModified = fields["Last-Modified"].flatMap { CivilTime(http: $0) == nil ? nil : $0 }
  }

  /// Whether there is none.
  package var isEmpty: Bool { entityTag == nil && lastModified == nil }

  /// The fields of a request that asks whether a stored response still holds (RFC 9111, section 4.3.1).
  package var conditions: HeaderFields {
    var fields = HeaderFields()
    if let entityTag { fields.append(HeaderField("If-None-Match", entityTag.text)) }
    if let lastModified { fields.append(HeaderField("If-Modified-Since", lastModified)) }
    return fields
  }

  /// Whether a 304 with these fields is about the response that has these validators (section 4.3.4). Tags decide where both have one.
  /// Otherwise both dates must be equal if both are present: a server may have gone back to an older version. If the 304 has a weak tag and the
  /// stored response has none, both dates must be present. A tag that cannot be read, or that is strong and new, is about another response.
  ///
  /// - Parameter present: seconds since 1970, for dates whose years have two digits.
  package func admit(_ notModified: HeaderFields, at present: Int64) -> Bool {
    var mustCorrespond = false
    if let field = notModified["ETag"] {
      guard let theirs = EntityTag(field) else { return false }
      if let entityTag { return theirs.matches(entityTag) }
      guard theirs.isWeak else { return false }
      mustCorrespond = true
    }
    let ours = Self.seconds(lastModified, present)
    let theirs = Self.seconds(notModified["Last-Modified"], present)
    guard let ours, let theirs else { return !mustCorrespond }
    return ours == theirs
  }

  private static func seconds(_ date: String?, _ present: Int64) -> Int64? {
    date.flatMap { CivilTime(http: $0, near: present) }?.seconds
  }
}

/// The conditions that a request brings (RFC 9110, section 13.1).
package struct RequestConditions: Sendable {

  /// Whether there is one that only the origin evaluates.
  package let isForOrigin: Bool
  /// Whether there is one that a cache evaluates.
  package let isForCache: Bool
  private let fields: HeaderFields

  /// Reads them. Nearly all requests have none.
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

  /// Whether a stored response makes the answer a 304 (RFC 9111, section 4.3.2).
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

  /// Whether a range is to be taken from a stored response (RFC 9110, section 13.1.5): there is no `If-Range`, or it names
  /// the response by a strong validator.
  package func admitRange(of entry: CacheEntry) -> Bool {
    guard let range = fields["If-Range"] else { return true }
    if range.utf8.last == 0x22 {
      guard let tag = EntityTag(range), let ours = entry.terms.validators.entityTag else { return false }
      return !tag.isWeak && tag == ours
    }
    return range == entry.terms.validators.lastModified
  }
}
