import NetOptCaching
import NetOptCore

/// What answers of the origin do to what is stored.
extension CacheCall {
  /// Answers that say nothing of what is stored.
  private static let silent: Set = [206, 226, 304, 408, 416, 421, 425, 428, 429, 431, 511]
  /// Those of them that are about the selected representation, of which they may bring a validator.
  private static let partial: Set = [206, 304, 416]

  /// The answer is not stored: what it replaces is forgotten. That the resource is elsewhere, gone or forbidden now replaces it
  /// as well; that the server is in trouble does not. A success that the caller alone kept from being stored says nothing of what is.
  func replaced(_ status: Int, _ fields: HeaderFields, _ control: CacheControl, _ fetch: Fetch) {
    if Self.partial.contains(status), fetch.stores { return compare(fields, fetch) }
    guard wanted.method == .get, status < 500, !Self.silent.contains(status) else { return }
    guard fetch.stores || control.noStore || !(200..<300 ~= status) else { return }
    cache.forget(
      fetch.hasOthers ? .all : .overlapping(Vary(fields).selectors(of: wanted)), for: key, begun: fetch.begun)
  }

  /// Forgets what is stored when an answer about a part of the representation has a validator of another version.
  private func compare(_ fields: HeaderFields, _ fetch: Fetch) {
    guard case .http = rules, wanted.method == .get, !Validators(fields).isEmpty else { return }
    var whole = fields
    // Those of the part.
    whole.removeAll {
      HeaderFields.equal($0.name, "Content-Length") || HeaderFields.equal($0.name, "Content-Range")
    }
    let entry = selectedInMemory(fetch)
    if let entry, Freshening.afterHead(entry, status: 200, whole) != .remove { return }
    // Without an entry an older one may be on its way, or on the disk alone.
    cache.forget(
      .overlapping(entry?.selectors ?? Vary(fields).selectors(of: wanted)), for: key, begun: fetch.begun)
  }

  /// The stored response that the request selects now, as far as memory has it, or the one of the decision.
  private func selectedInMemory(_ fetch: Fetch) -> CacheEntry? {
    CachePolicy.selected(ofRules(cache.store.memory.entries(for: key)), for: wanted) ?? fetch.entry
  }

  /// - Returns: how many changes of the resource that is.
  func invalidate(_ status: Int, _ fields: HeaderFields) -> UInt32 {
    // A declared API that is asked with POST changes nothing.
    if case .declared = rules { return 0 }
    var count: UInt32 = 0
    let urls = Invalidation.urls(wanted, status: status, fields)
    let concerned = urls.isEmpty ? [] : partitions
    for url in urls {
      var keys: Set<CacheKey> = url == request.url ? [key] : []
      for partition in concerned {
        if let key = try? RequestKey.url(url, partition: partition) { keys.insert(key) }
        if let key = try? RequestKey.canonical(url, partition: partition) { keys.insert(key) }
        // What versioned mode stores has the version beside its key.
        if case .versioned(let versions) = (request.options.cache ?? cache.options).mode,
          let query = VersionedPolicy(versions).version(of: url)?.query,
          let key = try? RequestKey.canonical(url, query: query, partition: partition)
        {
          keys.insert(key)
        }
      }
      for key in keys {
        // In this order: what is stored between the two knows that it was overtaken.
        cache.changes.changed(key)
        cache.flights.leave(key)
        cache.store.removeAll(for: key)
        if cache.changes.areShared(key, self.key) { count += 1 }
      }
    }
    return count
  }

  /// Compares an answer to HEAD with what is stored now: a response may have been stored since the decision.
  func freshen(_ status: Int, _ fields: HeaderFields, _ fetch: Fetch, _ received: Int64) {
    guard case .http = rules else { return }
    guard let entry = selectedInMemory(fetch) else {
      // An older response may be on its way, or on the disk alone.
      if status == 200, !Validators(fields).isEmpty {
        cache.forget(.overlapping(Vary(fields).selectors(of: wanted)), for: key, begun: fetch.begun)
      }
      return
    }
    switch Freshening.afterHead(entry, status: status, fields) {
    case .update:
      let updated = Freshening.updated(
        entry, with: fields, for: wanted, requested: fetch.requested, received: received)
      _ = keepUpdated(updated, after: fields, fetch)
    case .remove: cache.forget(.overlapping(entry.selectors), for: key, begun: fetch.begun)
    case .nothing: break
    }
  }

  /// - Returns: whether the updated entry is kept.
  func keepUpdated(_ updated: CacheEntry, after news: HeaderFields, _ fetch: Fetch) -> Bool {
    let isKept = Freshening.isKept(updated, after: news)
    if !isKept {
      cache.forget(.overlapping(updated.selectors), for: key, begun: fetch.begun)
      return false
    }
    cache.insert(updated, unlessChangedSince: fetch.changes, begun: fetch.begun)
    return true
  }
}
