import NetOptCaching
import NetOptCore

/// Sends a call's request to the origin, or waits for the fetch of another call.
extension CacheCall {
  /// The state of one fetch of a response from the origin.
  struct Fetch: Sendable {
    /// Why the request goes to the origin.
    var forward: CacheStatus.Forward
    /// The cache rule because of which the request goes to the origin.
    var rule: CacheRule
    /// The stored response that the origin validates, or that may answer if the origin fails; `nil` when the
    /// decision found none.
    var entry: CacheEntry?
    /// Whether `forgetReplaced` forgets all stored responses of the key when the new response is not stored. If
    /// false, it forgets only those that the new response would replace (`CacheEntry.overlaps`). True if the key
    /// has stored responses and the request goes to the origin because of its own fields or options: then it is
    /// not known which of them the new response replaces.
    var removesAllVariants = false
    /// The request fields that ask the origin to validate `entry` (`If-None-Match`, `If-Modified-Since`);
    /// empty when the origin does not validate it.
    var conditions = HeaderFields()
    /// Passes the outcome to the calls that wait for this fetch; `nil` when no call may wait for it.
    var leader: InFlightFetches.Leader?
    /// Whether the cache may store the response.
    var stores = true
    /// When the request was sent, by the cache's clock, in milliseconds since 1970. Before the response has
    /// come, it is the start of the fetch; `sent(for:of:)` then corrects it.
    var requested: Int64 = 0
    /// When the request was sent, by the monotonic clock. Before the response has come, it is the start of
    /// the fetch.
    var begun = MonotonicInstant(nanoseconds: 0)
    /// The deadline of the call; `nil` for a call without a time limit.
    var deadline: MonotonicInstant?
    /// The count of `ResourceChanges` for the key when the fetch began. `handleResponse` adds the changes
    /// that the call's own request made.
    var changeCount: UInt32 = 0
    /// The value of `ResourceChanges.removalCount` when the fetch began.
    var removalCount: UInt64 = 0

    /// Returns the fetch with `requested` and `begun` moved to the time at which the request of the
    /// successful attempt was sent. This time may be long after the fetch began, because connections,
    /// handshakes and failed attempts come first. The cache uses `begun` to decide which of two responses is
    /// newer. The start of the fetch would be wrong for this: the origin may have answered a fetch that began
    /// later before this request was sent.
    func sent(for response: NetOptResponse, of chain: InterceptorChain) -> Fetch {
      let sent = chain.started + response.timings.untilSent
      guard sent > begun else { return self }
      var fetch = self
      fetch.requested += (sent - begun).wholeMilliseconds
      fetch.begun = sent
      return fetch
    }
  }

  /// Performs what the cache has decided for the call.
  ///
  /// - Parameters:
  ///   - decision: the decision of the cache.
  ///   - hasEntries: whether the key has stored responses.
  ///   - next: the rest of the chain, which sends the request.
  func execute(
    _ decision: CacheDecision, hasEntries: Bool, _ next: InterceptorChain
  ) async throws(NetOptError) -> NetOptResponse {
    switch decision {
    case .serve(let service): return serve(service, refreshingWith: next)
    case .refuse(let rule):
      return gatewayTimeout(rule, "the request asks for a stored response, and none is stored")
    case .bypass(let rule):
      var fetch = Fetch(forward: .bypass, rule: rule)
      fetch.stores = false
      fetch.removesAllVariants = hasEntries
      return try await perform(fetch, next)
    case .fetch(let forward, let rule):
      return try await share(
        Fetch(forward: forward, rule: rule, removesAllVariants: hasEntries && forward.isOfRequest), next)
    case .validate(let entry, let conditions, let forward, let rule):
      return try await share(Fetch(forward: forward, rule: rule, entry: entry, conditions: conditions), next)
    }
  }

  /// Fetches, or waits for a fetch of another call with an equal key.
  ///
  /// - Parameters:
  ///   - hasWaited: whether the call has already waited for a fetch in vain, because the response was for
  ///     other values of the fields in the response's `Vary`. If this happens again, the call sends its own
  ///     request.
  ///   - isForSameFields: whether the call shares only fetches of requests with the same fields. True after
  ///     the call has waited for a fetch that failed, possibly because of the fields of the other request.
  private func share(
    _ fetch: Fetch, _ next: InterceptorChain, hasWaited: Bool = false, isForSameFields: Bool = false
  ) async throws(NetOptError) -> NetOptResponse {
    guard isShared else { return try await perform(fetch, next) }
    var fetch = fetch
    switch await cache.inFlightFetches.join(
      fetchKey(isForSameFields: isForSameFields), request.headers, until: next.deadline)
    {
    case .lead(let leader):
      fetch.leader = leader
      // Another fetch may have ended after the look-up and before this fetch began.
      if case .serve(let service) = decide(cache.store.memory.entries(for: key)) {
        leader.complete(.entry(service.entry))
        return serve(service, refreshingWith: next)
      }
      return try await perform(fetch, next)
    case .entry(let entry):
      switch decide([entry]) {
      case .serve(let service):
        return waited(serve(service, isCollapsed: true, refreshingWith: next), since: next.started)
      case .validate(let entry, let conditions, _, _): (fetch.entry, fetch.conditions) = (entry, conditions)
      default:
        // The fetched response is for other values of the fields in its `Vary`. Requests with this request's
        // values share another fetch.
        if !hasWaited, !Vary.selects(entry, cacheRequest) {
          return try await share(fetch, next, hasWaited: true, isForSameFields: isForSameFields)
        }
      }
    case .unshared: break
    // From now on this call shares only fetches of requests with the same fields.
    case .failedWithOtherFields:
      if !isForSameFields { return try await share(fetch, next, hasWaited: hasWaited, isForSameFields: true) }
    case .staleIfError(let status):
      if let service = await currentEntry(fetch, next).flatMap({ afterFailure(status, $0) }) {
        return waited(response(service, isCollapsed: true), since: next.started)
      }
    case .serverError(let entry):
      if cacheRequest.acceptsCoding(of: entry), Vary.selects(entry, cacheRequest) {
        return waited(response(serverError: entry, fetch), since: next.started)
      }
    case .failed(let error):
      return waited(try await recover(from: error, fetch, next), since: next.started)
    }
    return try await perform(fetch, next)
  }

  /// The key by which calls share a fetch. It has the cache key, the request's options and version, and its
  /// values of the fields that the stored responses in memory depend on.
  ///
  /// - Parameter isForSameFields: whether the key also has all fields of the request, except tracing fields.
  private func fetchKey(isForSameFields: Bool = false) -> InFlightFetches.Key {
    let names = Set(cache.store.memory.entries(for: key).flatMap { $0.selectors.map(\.name) })
    let selectors = names.isEmpty ? [] : Vary.fields(names.sorted()).selectors(of: cacheRequest)
    return InFlightFetches.Key(
      key: key, selectors: selectors, request.options, version: version,
      fields: isForSameFields ? request.headers : nil)
  }

  /// Sends the request to the origin and handles the response or the error.
  private func perform(_ fetch: Fetch, _ next: InterceptorChain) async throws(NetOptError) -> NetOptResponse {
    var fetch = fetch
    fetch.removalCount = cache.changes.removalCount
    // The program has removed the entry since the call began, or removes it now. The origin must not confirm
    // it. An entry of a seed pack has no `resource`, so the check uses the `resource` of the call.
    if let entry = fetch.entry,
      cache.changes.removal(of: key, entry.resource ?? resource, since: removalCount) != .none
    {
      (fetch.entry, fetch.conditions) = (nil, [:])
    }
    var forwarded = request
    for field in fetch.conditions { forwarded.headers[field.name] = field.value }
    fetch.requested = cache.now()
    fetch.begun = cache.timeSource.now()
    fetch.deadline = next.deadline
    fetch.changeCount = cache.changes.changeCount(of: key)
    // The settings have changed since the key was made, so the response must not be stored under the key. A
    // count that differs from the real one makes the store refuse it.
    if settingsChanges != cache.settingsChanges { fetch.changeCount &+= 1 << 31 }
    do throws(NetOptError) {
      let response = try await next.proceed(forwarded)
      fetch = fetch.sent(for: response, of: next)
      guard response.status == 304, !fetch.conditions.isEmpty, let entry = fetch.entry else {
        return await handleResponse(response, fetch, next)
      }
      let newFields = response.head.withExactLocation(response.headers)
      if entry.terms.validators.match(newFields, at: cache.now() / 1000) {
        return handleNotModified(entry, response, newFields, fetch)
      }
      // The 304 validates another response than the stored one (RFC 9111, section 4.3.4). The stored response
      // is forgotten, and the request is sent again without conditions.
      fetch.conditions = [:]
      cache.forget(.overlapping(entry.selectors), for: key, begun: fetch.begun)
      let answer = try await next.proceed(request)
      return await handleResponse(answer, fetch.sent(for: answer, of: next), next)
    } catch {
      fetch.leader?.fail(error, deadline: fetch.deadline, at: cache.timeSource.now())
      return try await recover(from: error, fetch, next)
    }
  }

  /// The errors which mean that the origin could not be reached or did not answer correctly.
  private static let unreachable: Set<NetOptError.Code> = [
    .connectFailed, .proxyFailed, .sendFailed, .receiveFailed, .timeout, .nameNotFound, .resolverFailed,
    .protocolViolation,
  ]

  /// Answers a call whose fetch failed because the origin could not be reached: with the stored response, or
  /// with 504 when the stored response may not be used. Rethrows the error for any other failure, when the
  /// decision found no stored response, and outside `http` mode.
  private func recover(
    from error: NetOptError, _ fetch: Fetch, _ next: InterceptorChain
  ) async throws(NetOptError) -> NetOptResponse {
    guard fetch.entry != nil, Self.unreachable.contains(error.code), case .http = rules else { throw error }
    if let entry = await currentEntry(fetch, next), let service = afterFailure(nil, entry) {
      return response(service, error: error)
    }
    return gatewayTimeout(
      .unreachable, "the origin could not be reached: \(error.message)", route: error.route)
  }

  /// The stored response that the request selects now; `nil` when there is none, or when the decision found
  /// none. It may differ from `fetch.entry`, which may have been replaced or invalidated since the decision.
  private func currentEntry(_ fetch: Fetch, _ next: InterceptorChain) async -> CacheEntry? {
    guard fetch.entry != nil else { return nil }
    let entries = await cache.store.entries(for: key, within: cache.patience(until: next.deadline))
    return CachePolicy.selected(applicableEntries(entries), for: cacheRequest)
  }

  // MARK: Responses of the origin

  /// Handles a 304 that confirms `entry`: updates the entry and answers with it.
  ///
  /// - Parameter newFields: the fields of the 304, with its exact `Location`.
  private func handleNotModified(
    _ entry: CacheEntry, _ response: NetOptResponse, _ newFields: HeaderFields, _ fetch: Fetch
  ) -> NetOptResponse {
    let received = cache.now()
    let updated = Freshening.updated(
      entry, with: newFields, for: cacheRequest, requested: fetch.requested, received: received)
    let isKept = keepUpdated(updated, after: newFields, fetch)
    // If the updated entry must not be stored, or has `Vary: *`, which no request matches, only this call
    // gets it.
    fetch.leader?.complete(isKept ? .entry(updated) : .unshared)
    return self.response(validated: updated, response, fetch, isStored: isKept)
  }

  /// Handles every response except a 304 to the cache's own conditions. The response may be a 304 to
  /// conditions of the caller.
  private func handleResponse(
    _ response: NetOptResponse, _ fetch: Fetch, _ next: InterceptorChain
  ) async -> NetOptResponse {
    let fields = response.headers
    let received = cache.now()
    var (response, fetch) = (response, fetch)
    // The count includes the change that the call's own request made, because the response is not older than
    // this change. After a change by another request, the counts differ, and the cache does not store the
    // response.
    fetch.changeCount &+= invalidate(response.status, fields)
    if cacheRequest.method == .head, fetch.stores {
      updateAfterHead(response.status, response.head.withExactLocation(fields), fetch, received)
    }
    if CachePolicy.serverErrors.contains(response.status), let entry = await currentEntry(fetch, next),
      let service = afterFailure(response.status, entry)
    {
      fetch.leader?.complete(.staleIfError(response.status))
      return self.response(service, status: response.status)
    }
    let terms = ResponseTerms(
      status: response.status, fields: fields, requested: fetch.requested, received: received)
    let expiry = declaredExpiry(response.status, received: received)
    var storing = fetch.stores ? self.storing(response.status, fields, terms) : .refused(fetch.rule)
    let isShared = storing.isStored || isSharedServerError(response.status, fields, terms.control, fetch)
    if isShared, !keep(&response, fields, terms, fetch, received, expiry, isStored: storing.isStored) {
      storing = .refused(.tooLarge)
    } else if !isShared {
      fetch.leader?.complete(.unshared)
    }
    if !storing.isStored { forgetReplaced(response.status, fields, terms.control, fetch) }
    response.cacheStatus = CacheStatus(
      .miss, by: fetch.rule, forward: fetch.forward, forwardedStatus: response.status,
      timeToLive: storing.isStored && version == nil
        ? (expiry.map { $0 - received } ?? terms.timeLeft(at: received)) / 1000 : nil, storing: storing.rule,
      isStored: storing.isStored)
    return response
  }

  /// Whether the waiting calls get this response although the cache does not store it, because its status is
  /// 500, 502, 503 or 504. If each waiting call sent its own request, a failing server would get all of them
  /// at once.
  private func isSharedServerError(
    _ status: Int, _ fields: HeaderFields, _ control: CacheControl, _ fetch: Fetch
  ) -> Bool {
    fetch.leader != nil && CachePolicy.serverErrors.contains(status) && !control.noStore
      && Vary(fields) != .everything
  }

  /// Collects the bytes of the body while the caller reads them. When the body is complete, the cache stores the
  /// response, or only gives it to the waiting calls.
  ///
  /// - Parameters:
  ///   - response: the response; its body is replaced by one that keeps the bytes as they pass.
  ///   - received: when the head of the response came, in milliseconds since 1970.
  ///   - expiry: the declared expiry, in milliseconds since 1970; `nil` when nothing is declared.
  ///   - isStored: whether to store the response.
  /// - Returns: false when the body is known to be too large. Then each waiting call fetches for itself.
  private func keep(
    _ response: inout NetOptResponse, _ fields: HeaderFields, _ terms: ResponseTerms, _ fetch: Fetch,
    _ received: Int64, _ expiry: Int64?, isStored: Bool
  ) -> Bool {
    if let length = response.head.first("Content-Length").flatMap({ Int($0) }), length > cache.entryLimit {
      fetch.leader?.complete(.unshared)
      return false
    }
    let isDecoded = cacheRequest.wantsDecoded && ContentCoding.isDecodable(fields)
    let stored = StoredFields.stored(
      response.head.withExactLocation(fields), control: terms.control, isDecoded: isDecoded,
      received: received)
    let pendingEntry = PendingEntry(
      cache: cache, leader: fetch.leader, key: key, selectors: Vary(fields).selectors(of: cacheRequest),
      status: response.status, fields: stored,
      requested: fetch.requested, received: received,
      declaredExpiry: expiry, resourceVersion: version,
      begun: fetch.begun, deadline: fetch.deadline, changeCount: fetch.changeCount,
      removalCount: fetch.removalCount, resource: resource, shouldStore: isStored)
    if let whole = response.body.whole {
      guard whole.count <= cache.entryLimit else {
        fetch.leader?.complete(.unshared)
        return false
      }
      pendingEntry.complete(whole)
      return true
    }
    let body = StoringBody(response.body, pendingEntry)
    fetch.leader?.setBody(body)
    response.body = ResponseBody(body)
    return true
  }

  // MARK: Background refresh

  /// The time limit of a background refresh when the call that caused it has none.
  private static let longestRefresh = Duration.seconds(300)

  /// Refreshes a stale entry in the background. Does nothing when it has been replaced, when a fetch with the
  /// same `fetchKey` is running, when the origin has `ResponseCache.mostRefreshes` running refreshes, or when
  /// the call may not share fetches.
  func refresh(_ entry: CacheEntry, _ next: InterceptorChain) {
    let origin = request.url.origin
    guard isShared, cache.beginRefresh(of: origin) else { return }
    guard let leader = cache.inFlightFetches.lead(fetchKey(), request.headers) else {
      return cache.endRefresh(of: origin)
    }
    // Another refresh may have ended after this call had read the entry. It stored its response before it gave
    // up the lead.
    let isReplaced = cache.store.memory.entries(for: key).contains {
      $0.selectors == entry.selectors && $0 !== entry
    }
    if isReplaced { return cache.endRefresh(of: origin) }
    var fetch = Fetch(forward: .stale, rule: .stale, entry: entry)
    if case .http = rules { fetch.conditions = entry.terms.validators.conditions }
    fetch.leader = leader
    var chain = next
    var context = next.context
    context.plan = nil
    let limit = context.deadline.map { $0 - context.started }
    context.started = cache.timeSource.now()
    // No caller can cancel a refresh.
    context.deadline = context.started + (limit ?? Self.longestRefresh)
    chain.context = context
    cache.inBackground(isRefresh: true) { [fetch, chain, cache] in
      defer { cache.endRefresh(of: origin) }
      guard let response = try? await perform(fetch, chain) else { return }
      // The body must be read to its end, because only a complete body is stored. A body that will not be
      // stored is not read.
      guard response.cacheStatus.isStored else { return }
      _ = try? await response.body.collect(upTo: cache.entryLimit)
    }
  }
}

extension CacheStatus.Forward {
  /// Whether the request goes to the origin because of its own fields or options, and not because of the
  /// state of the cache.
  fileprivate var isOfRequest: Bool {
    switch self {
    case .bypass, .request, .partial: true
    case .method, .uriMiss, .varyMiss, .miss, .stale: false
    }
  }
}

extension ResponseHead {
  /// Returns the fields with the exact `Location` of this head. As text, the field may have lost bytes beyond
  /// ASCII. A stored redirect must lead to the same URL as the original response.
  fileprivate func withExactLocation(_ fields: HeaderFields) -> HeaderFields {
    guard fields.contains(name: "Location"), let location = reference("Location") else { return fields }
    var exact = fields
    exact["Location"] = location
    return exact
  }
}
