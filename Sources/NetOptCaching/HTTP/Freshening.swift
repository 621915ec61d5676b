package import NetOptCore

/// The effects of a new response on a stored one.
package enum Freshening {
  /// The entry that replaces a stored one after the origin confirmed it (RFC 9111, section 4.3.4).
  ///
  /// - Parameters:
  ///   - newFields: the fields of the 304, or of the response to HEAD.
  ///   - requested: when the request for `newFields` was sent, in milliseconds since 1970.
  ///   - received: when `newFields` was received, in milliseconds since 1970.
  ///   - request: the request. Its fields are the new selectors, for the names in the new `Vary`. Selectors
  ///     for names only in the old `Vary` stay. After HEAD the names are the same.
  package static func updated(
    _ entry: CacheEntry, with newFields: HeaderFields, for request: CacheRequest, requested: Int64,
    received: Int64
  ) -> CacheEntry {
    var fields = StoredFields.updated(entry.fields, with: newFields, control: CacheControl(newFields))
    // A response without `Date` gets the time at which it was received (RFC 9110, section 6.6.1).
    if !newFields.contains(name: "Date") { fields["Date"] = CivilTime(seconds: received / 1000).http }
    // The old selectors stay: the origin selected the stored body by them, whatever the new `Vary` names.
    let now = Vary(fields).selectors(of: request)
    let before = entry.selectors.filter { old in !now.contains { $0.name == old.name } }
    return CacheEntry(
      key: entry.key, selectors: (now + before).sorted { $0.name < $1.name }, status: entry.status,
      fields: fields, body: entry.body, requested: requested, received: received,
      declaredExpiry: entry.declaredExpiry, resourceVersion: entry.resourceVersion,
      fetchMicroseconds: entry.fetchMicroseconds)
  }

  /// The maximum number of fields of an entry, and of bytes in them: the limits of the transport for one
  /// head. Each update may add fields.
  package static let most = (fields: 2000, bytes: 256 * 1024)

  /// Whether the updated entry may be stored. It is false when the update forbids storing, when
  /// `StoredFields.losesTerms` holds for the update, or when the entry has become larger than one response
  /// head.
  package static func isKept(_ updated: CacheEntry, after newFields: HeaderFields) -> Bool {
    let control = updated.terms.control
    return !StoredFields.losesTerms(of: newFields, CacheControl(newFields))
      && !control.forbidsStoring && Vary(updated.fields) != .everything
      && updated.selectors.count <= Vary.mostNames && updated.fields.count <= most.fields
      && updated.fields.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count } <= most.bytes
  }

  /// The effect of a response to HEAD on a stored response (section 4.3.5).
  package enum AfterHead: Hashable, Sendable {
    /// Both have the same representation: the cache updates the stored fields.
    case update
    /// The representations differ: the cache removes the stored response.
    case remove
    /// The stored response stays as it is.
    case nothing
  }

  /// Compares a response to HEAD with the response stored for GET. The representation is the same only if a
  /// validator that both have is equal. If neither a validator nor a difference decides, the stored response
  /// stays as it is.
  package static func afterHead(_ entry: CacheEntry, status: Int, _ fields: HeaderFields) -> AfterHead {
    guard status == 200 else { return .nothing }
    // The resource was gone, moved or failing when the entry was stored, and is available now.
    guard entry.status == 200 else { return .remove }
    // The stored body was selected by other fields than the current `Vary` names.
    if fields.contains(name: "Vary"), Vary(fields) != Vary(entry.fields) { return .remove }
    let (theirs, ours) = (Validators(fields), entry.terms.validators)
    let (hasTag, hadTag) = (fields.contains(name: "ETag"), entry.fields.contains(name: "ETag"))
    if hasTag, hadTag {
      guard let tag = theirs.entityTag, let mine = ours.entityTag, tag.matches(mine) else { return .remove }
    }
    if let date = theirs.lastModified, let mine = ours.lastModified, date != mine { return .remove }
    // The length of encoded content cannot be compared.
    if !fields.contains(name: "Content-Encoding"), let length = fields["Content-Length"],
      let mine = entry.fields["Content-Length"], length != mine
    {
      return .remove
    }
    // If only one of them has a tag, equal dates do not decide: both versions may be from the same second.
    guard hasTag == hadTag,
      theirs.entityTag != nil || theirs.lastModified != nil && ours.lastModified != nil
    else { return .nothing }
    return .update
  }
}
