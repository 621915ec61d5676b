package import NetOptCore

/// Updates a stored response after a 304 or after a response to HEAD.
package enum Freshening {
  /// Makes the new entry that replaces a stored one after the origin confirmed that the stored response is
  /// still valid (RFC 9111, section 4.3.4).
  ///
  /// - Parameters:
  ///   - newFields: the fields of the 304, or of the response to HEAD.
  ///   - requested: when the request for `newFields` was sent, in milliseconds since 1970.
  ///   - received: when `newFields` was received, in milliseconds since 1970.
  ///   - request: the request for `newFields`. The new entry has a selector for each name in its `Vary`, with
  ///     the value of the field in this request. Selectors of the old entry with other names stay. After HEAD
  ///     there are none, because `afterHead` demands that `Vary` has not changed.
  package static func updated(
    _ entry: CacheEntry, with newFields: HeaderFields, for request: CacheRequest, requested: Int64,
    received: Int64
  ) -> CacheEntry {
    var fields = StoredFields.updated(entry.fields, with: newFields, control: CacheControl(newFields))
    // A response without `Date` gets the time at which it was received (RFC 9110, section 6.6.1).
    if !newFields.contains(name: "Date") { fields["Date"] = CivilTime(seconds: received / 1000).http }
    // Keeps the other selectors, because the origin chose the stored body by the values of their fields.
    let now = Vary(fields).selectors(of: request)
    let before = entry.selectors.filter { old in !now.contains { $0.name == old.name } }
    return CacheEntry(
      key: entry.key, selectors: (now + before).sorted { $0.name < $1.name }, status: entry.status,
      fields: fields, body: entry.body, requested: requested, received: received,
      declaredExpiry: entry.declaredExpiry, resourceVersion: entry.resourceVersion,
      resource: entry.resource, fetchMicroseconds: entry.fetchMicroseconds)
  }

  /// Whether the updated entry may be stored. It may not when its fields now forbid storing, when
  /// `StoredFields.dropsCachingTerms` is true for the new fields, or when it exceeds `HeaderFields.most` or
  /// `Vary.mostNames`. Each update may add fields, so an entry could become larger than a response head.
  package static func mayBeStored(_ updated: CacheEntry, after newFields: HeaderFields) -> Bool {
    let control = updated.terms.control
    return !StoredFields.dropsCachingTerms(of: newFields, CacheControl(newFields))
      && !control.forbidsStoring && Vary(updated.fields) != .everything
      && updated.selectors.count <= Vary.mostNames && updated.fields.count <= HeaderFields.most.fields
      && updated.fields.size <= HeaderFields.most.bytes
  }

  /// The effect of a response to HEAD on a stored response (section 4.3.5).
  package enum AfterHead: Hashable, Sendable {
    /// HEAD describes the stored response: the cache updates the stored fields.
    case update
    /// HEAD describes another response: the cache removes the stored response.
    case remove
    /// It is not known whether HEAD describes the stored response, which stays unchanged.
    case nothing
  }

  /// Compares a response to HEAD with the response that is stored for GET. The first of these rules that
  /// applies decides:
  ///
  /// - If the status of the response to HEAD is not 200, the result is `nothing`.
  /// - If the stored status is not 200, or if `Vary`, a validator or the length differs, the result is
  ///   `remove`.
  /// - If a validator is equal, the result is `update`. Equal dates count only if neither response has an
  ///   `ETag`.
  /// - Otherwise the result is `nothing`.
  package static func afterHead(_ entry: CacheEntry, status: Int, _ fields: HeaderFields) -> AfterHead {
    guard status == 200 else { return .nothing }
    // When the entry was stored, the resource was gone, moved or failing. Now it is available.
    guard entry.status == 200 else { return .remove }
    // The origin chose the stored body by other request fields than it does now.
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
    // If only one response has a tag, equal dates are not enough. Two versions may be from the same second.
    guard hasTag == hadTag,
      theirs.entityTag != nil || theirs.lastModified != nil && ours.lastModified != nil
    else { return .nothing }
    return .update
  }
}
