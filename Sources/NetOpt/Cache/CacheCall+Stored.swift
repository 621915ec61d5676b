import NetOptCaching
import NetOptCore

/// Updates or forgets stored responses when the origin has answered.
extension CacheCall {
  /// The statuses that do not by themselves show that the stored responses are outdated.
  private static let uninformative: Set = [206, 226, 304, 408, 416, 421, 425, 428, 429, 431, 511]
  /// The statuses in `uninformative` whose responses may carry a validator of the selected representation.
  private static let partial: Set = [206, 304, 416]

  /// Forgets the stored responses that are outdated because of a response that is not stored. For example,
  /// the response says that the resource is elsewhere, gone or forbidden. A 5xx response makes no stored
  /// response outdated. Nor does a successful response that is not stored only because the decision bypassed
  /// the cache.
  ///
  /// - Parameters:
  ///   - status: the status of the response.
  ///   - fields: the fields of the response.
  ///   - control: the `Cache-Control` of the response.
  func forgetReplaced(_ status: Int, _ fields: HeaderFields, _ control: CacheControl, _ fetch: Fetch) {
    if Self.partial.contains(status), fetch.stores { return forgetOtherVersions(fields, fetch) }
    guard cacheRequest.method == .get, status < 500, !Self.uninformative.contains(status) else { return }
    guard fetch.stores || control.noStore || !(200..<300 ~= status) else { return }
    cache.forget(
      fetch.removesAllVariants ? .all : .overlapping(Vary(fields).selectors(of: cacheRequest)), for: key,
      begun: fetch.begun)
  }

  /// Forgets stored responses when a 206, 304 or 416 response has a validator, and `Freshening.afterHead`
  /// finds that it describes another response than the selected entry. Also forgets them when no
  /// selected entry is known: then nothing can be compared.
  private func forgetOtherVersions(_ fields: HeaderFields, _ fetch: Fetch) {
    guard case .http = rules, cacheRequest.method == .get, !Validators(fields).isEmpty else { return }
    var whole = fields
    // These fields describe the part that was sent, and not the whole representation.
    whole.removeAll {
      HeaderFields.equal($0.name, "Content-Length") || HeaderFields.equal($0.name, "Content-Range")
    }
    let entry = selectedInMemory(fetch)
    if let entry, Freshening.afterHead(entry, status: 200, whole) != .remove { return }
    // Without an entry in memory, an older response may still be in transfer, or only on the disk.
    cache.forget(
      .overlapping(entry?.selectors ?? Vary(fields).selectors(of: cacheRequest)), for: key,
      begun: fetch.begun)
  }

  /// The stored response in memory that the request selects now; if there is none, the entry of the decision.
  private func selectedInMemory(_ fetch: Fetch) -> CacheEntry? {
    CachePolicy.selected(applicableEntries(cache.store.memory.entries(for: key)), for: cacheRequest)
      ?? fetch.entry
  }

  /// Forgets the stored responses of the resources that the call's request has changed (RFC 9111, section
  /// 4.4).
  ///
  /// - Parameters:
  ///   - status: the status of the response to the request.
  ///   - fields: the fields of the response.
  /// - Returns: by how much this increases the count of `ResourceChanges` for the call's own key.
  func invalidate(_ status: Int, _ fields: HeaderFields) -> UInt32 {
    // A POST to a declared API changes nothing.
    if case .declared = rules { return 0 }
    var count: UInt32 = 0
    let urls = Invalidation.urls(cacheRequest, status: status, fields)
    let concerned = urls.isEmpty ? [] : partitions
    for url in urls {
      var keys: Set<CacheKey> = url == request.url ? [key] : []
      for partition in concerned {
        if let key = try? RequestKey.url(url, partition: partition) { keys.insert(key) }
        if let key = try? RequestKey.canonical(url, partition: partition) { keys.insert(key) }
        // In versioned mode the key contains the query without the version.
        if case .versioned(let versions) = (request.options.cache ?? cache.options).mode,
          let query = VersionedPolicy(versions).version(of: url)?.query,
          let key = try? RequestKey.canonical(url, query: query, partition: partition)
        {
          keys.insert(key)
        }
      }
      for key in keys {
        // The change is recorded before the removal, so that `insert` refuses older responses from then on.
        cache.changes.recordChange(of: key)
        cache.store.removeAll(for: key)
        // See `ResponseCache.forget` for the order.
        cache.inFlightFetches.forget(key)
        if cache.changes.areCountedTogether(key, self.key) { count += 1 }
      }
    }
    return count
  }

  /// Compares a response to HEAD with the stored response to GET, and updates or forgets the stored response.
  /// Uses the response that is stored now, because it may be newer than `fetch.entry`.
  ///
  /// - Parameters:
  ///   - fields: the fields of the response to HEAD.
  ///   - received: when the response to HEAD came, in milliseconds since 1970.
  func updateAfterHead(_ status: Int, _ fields: HeaderFields, _ fetch: Fetch, _ received: Int64) {
    guard case .http = rules else { return }
    guard let entry = selectedInMemory(fetch) else {
      // An older response may still be in transfer, or only on the disk.
      if status == 200, !Validators(fields).isEmpty {
        cache.forget(.overlapping(Vary(fields).selectors(of: cacheRequest)), for: key, begun: fetch.begun)
      }
      return
    }
    switch Freshening.afterHead(entry, status: status, fields) {
    case .update:
      let updated = Freshening.updated(
        entry, with: fields, for: cacheRequest, requested: fetch.requested, received: received)
      _ = keepUpdated(updated, after: fields, fetch)
    case .remove: cache.forget(.overlapping(entry.selectors), for: key, begun: fetch.begun)
    case .nothing: break
    }
  }

  /// Stores an updated entry, or forgets it when it may not be stored (`Freshening.mayBeStored`).
  ///
  /// - Parameter newFields: the fields of the response that updated the entry.
  /// - Returns: false when the updated entry may not be stored.
  func keepUpdated(_ updated: CacheEntry, after newFields: HeaderFields, _ fetch: Fetch) -> Bool {
    let isKept = Freshening.mayBeStored(updated, after: newFields)
    if !isKept {
      cache.forget(.overlapping(updated.selectors), for: key, begun: fetch.begun)
      return false
    }
    cache.insert(
      updated, unlessChangedSince: fetch.changeCount, removals: fetch.removalCount, begun: fetch.begun)
    return true
  }
}
