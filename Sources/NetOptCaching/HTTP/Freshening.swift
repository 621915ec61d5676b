package import NetOptCore

/// What an answer does to a response that is stored.
package enum Freshening {
  /// The entry that takes the place of a stored one after the origin said that it still holds (RFC 9111, section 4.3.4).
  ///
  /// - Parameters:
  ///   - news: the fields of the 304, or of the answer to HEAD.
  ///   - requested: when that was asked for: milliseconds since 1970.
  ///   - received: when it came.
  ///   - request: what was asked; its fields select the response from now on, by what `Vary` says now and said before. After HEAD that is the
  ///     same.
  package static func updated(
    _ entry: CacheEntry, with news: HeaderFields, for request: CacheRequest, requested: Int64, received: Int64
  ) -> CacheEntry {
    var fields = StoredFields.updated(entry.fields, with: news, control: CacheControl(news))
    // What comes without a date is from when it came (RFC 9110, section 6.6.1).
    if !news.contains(name: "Date") { fields["Date"] = CivilTime(seconds: received / 1000).http }
    // The stored body was selected by the fields that counted then, whatever is said now.
    let now = Vary(fields).selectors(of: request)
    let before = entry.selectors.filter { old in !now.contains { $0.name == old.name } }
    return CacheEntry(
      key: entry.key, selectors: (now + before).sorted { $0.name < $1.name }, status: entry.status,
      fields: fields, body: entry.body, requested: requested, received: received,
      declaredExpiry: entry.declaredExpiry, resourceVersion: entry.resourceVersion,
      fetchMicroseconds: entry.fetchMicroseconds)
  }

  /// The most fields that an entry keeps, and the most bytes of them: what the transport takes for one head. Each update may add fields.
  package static let most = (fields: 2000, bytes: 256 * 1024)

  /// Whether the updated entry may be kept: not when the update forbids storing, or says on what terms in fields that are not stored
  /// (`StoredFields.losesTerms`), nor when the entry has become larger than one response head.
  package static func isKept(_ updated: CacheEntry, after news: HeaderFields) -> Bool {
    let control = updated.terms.control
    return !StoredFields.losesTerms(of: news, CacheControl(news))
      && !control.forbidsStoring && Vary(updated.fields) != .everything
      && updated.selectors.count <= Vary.mostNames && updated.fields.count <= most.fields
      && updated.fields.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count } <= most.bytes
  }

  /// What is done to a stored response after an answer to HEAD (section 4.3.5).
  package enum AfterHead: Hashable, Sendable {
    /// It is of the same representation: its fields are brought up to date.
    case update
    /// It is of another one: it is forgotten.
    case remove
    /// Nothing.
    case nothing
  }

  /// Compares an answer to HEAD with what is stored for GET. It is of the same representation only when a validator that both have says so; where
  /// none does, the stored response stays as it is.
  package static func afterHead(_ entry: CacheEntry, status: Int, _ fields: HeaderFields) -> AfterHead {
    guard status == 200 else { return .nothing }
    // The resource is not gone, elsewhere or in trouble any more.
    guard entry.status == 200 else { return .remove }
    // The body was selected by other fields than those that count now.
    if fields.contains(name: "Vary"), Vary(fields) != Vary(entry.fields) { return .remove }
    let (theirs, ours) = (Validators(fields), entry.terms.validators)
    let (hasTag, hadTag) = (fields.contains(name: "ETag"), entry.fields.contains(name: "ETag"))
    if hasTag, hadTag {
      guard let tag = theirs.entityTag, let mine = ours.entityTag, tag.matches(mine) else { return .remove }
    }
    if let date = theirs.lastModified, let mine = ours.lastModified, date != mine { return .remove }
    // Of content that is encoded on the way the length says nothing.
    if !fields.contains(name: "Content-Encoding"), let length = fields["Content-Length"],
      let mine = entry.fields["Content-Length"], length != mine
    {
      return .remove
    }
    // When one of them has no tag, both may be versions of the same second.
    guard hasTag == hadTag,
      theirs.entityTag != nil || theirs.lastModified != nil && ours.lastModified != nil
    else { return .nothing }
    return .update
  }
}
