import NetOptCaching
import NetOptCore

/// Fetches from the origin.
extension CacheCall {
  /// A request to the origin, and the reason for it.
  struct Fetch: Sendable {
    var forward: CacheStatus.Forward
    var rule: CacheRule
    /// The stale entry.
    var entry: CacheEntry?
    /// Whether the key has stored responses although the request itself demands the origin.
    var hasStoredResponses = false
    /// The request fields that ask the origin to validate the entry.
    var conditions = HeaderFields()
    /// The leader of the fetch, when other calls may wait for the outcome.
    var leader: InFlightFetches.Leader?
    /// Whether the cache may store the response.
    var stores = true
    /// When the request was sent: by the system clock, in milliseconds since 1970, and by the monotonic
    /// clock.
    var requested: Int64 = 0
    var begun = MonotonicInstant(nanoseconds: 0)
    /// The deadline of the call, or `nil`.
    var deadline: MonotonicInstant?
    /// The count of `ResourceChanges` for the key when the fetch began.
    var changeCount: UInt32 = 0

    /// Returns the fetch with the send time of the attempt that the response answers. Connections, handshakes
    /// and failed attempts may have taken long, and the origin may have answered later requests meanwhile.
    func sent(for response: NetOptResponse, of chain: InterceptorChain) -> Fetch {
      let sent = chain.started + response.timings.untilSent
      guard sent > begun else { return self }
      var fetch = self
      fetch.requested += (sent - begun).wholeMilliseconds
      fetch.begun = sent
      return fetch
    }
  }

  /// Handles a call that no stored response answers at once.
  ///
  /// - Parameter hasEntries: whether the key has stored responses.
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
      fetch.hasStoredResponses = hasEntries
      return try await perform(fetch, next)
    case .fetch(let forward, let rule):
      return try await share(
        Fetch(forward: forward, rule: rule, hasStoredResponses: hasEntries && forward.isOfRequest), next)
    case .validate(let entry, let conditions, let forward, let rule):
      return try await share(Fetch(forward: forward, rule: rule, entry: entry, conditions: conditions), next)
    }
  }

  /// Fetches, or waits for the same fetch of another call.
  ///
  /// - Parameters:
  ///   - hasWaited: whether the call has already waited once, and then learned that the response depends on
  ///     request fields.
  ///   - isForSameFields: whether only requests with the same fields share the fetch. This follows a shared
  ///     fetch that failed, possibly because of the fields of its request.
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
      case .serve(let service): return serve(service, isCollapsed: true, refreshingWith: next)
      case .validate(let entry, let conditions, _, _): (fetch.entry, fetch.conditions) = (entry, conditions)
      default:
        // The response depends on request fields in which this request differs. Requests with the same values
        // share another fetch.
        if !hasWaited, !Vary.selects(entry, cacheRequest) {
          return try await share(fetch, next, hasWaited: true, isForSameFields: isForSameFields)
        }
      }
    case .unshared: break
    // Requests with the same fields share a fetch of their own.
    case .failedWithOtherFields:
      if !isForSameFields { return try await share(fetch, next, hasWaited: hasWaited, isForSameFields: true) }
    case .staleIfError(let status):
      if let service = await currentEntry(fetch, next).flatMap({ afterFailure(status, $0) }) {
        return response(service, isCollapsed: true)
      }
    case .serverError(let entry):
      if cacheRequest.decodes(entry), Vary.selects(entry, cacheRequest) {
        return response(serverError: entry, fetch)
      }
    case .failed(let error): return try await recover(from: error, fetch, next)
    }
    return try await perform(fetch, next)
  }

  /// The key of the fetch: the cache key, and the request's values of the fields that the stored responses
  /// depend on.
  private func fetchKey(isForSameFields: Bool = false) -> InFlightFetches.Key {
    let names = Set(cache.store.memory.entries(for: key).flatMap { $0.selectors.map(\.name) })
    let selectors = names.isEmpty ? [] : Vary.fields(names.sorted()).selectors(of: cacheRequest)
    return InFlightFetches.Key(
      key: key, selectors: selectors, request.options, version: version,
      fields: isForSameFields ? request.headers : nil)
  }

  /// Sends the request to the origin and handles the response.
  private func perform(_ fetch: Fetch, _ next: InterceptorChain) async throws(NetOptError) -> NetOptResponse {
    var fetch = fetch
    var forwarded = request
    for field in fetch.conditions { forwarded.headers[field.name] = field.value }
    fetch.requested = cache.now()
    fetch.begun = cache.timeSource.now()
    fetch.deadline = next.deadline
    fetch.changeCount = cache.changes.changeCount(of: key)
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
      // The 304 is about another response than the stored one (RFC 9111, section 4.3.4).
      fetch.conditions = [:]
      cache.forget(.overlapping(entry.selectors), for: key, begun: fetch.begun)
      let answer = try await next.proceed(request)
      return await handleResponse(answer, fetch.sent(for: answer, of: next), next)
    } catch {
      fetch.leader?.fail(error, deadline: fetch.deadline, at: cache.timeSource.now())
      return try await recover(from: error, fetch, next)
    }
  }

  private static let unreachable: Set<NetOptError.Code> = [
    .connectFailed, .proxyFailed, .sendFailed, .receiveFailed, .timeout, .nameNotFound, .resolverFailed,
    .protocolViolation,
  ]

  /// Answers for an origin that cannot be reached: with the stored response, or with 504 when the stored
  /// response may not be used. Rethrows any other error.
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

  /// The stored response that the request selects now. It may differ from the entry of the decision, which
  /// may have been replaced or invalidated since. `nil` when there is none, or when there was none at the
  /// decision.
  private func currentEntry(_ fetch: Fetch, _ next: InterceptorChain) async -> CacheEntry? {
    guard fetch.entry != nil else { return nil }
    let entries = await cache.store.entries(for: key, within: cache.patience(until: next.deadline))
    return CachePolicy.selected(applicableEntries(entries), for: cacheRequest)
  }

  // MARK: Responses of the origin

  /// Handles a 304: the stored response is still valid.
  private func handleNotModified(
    _ entry: CacheEntry, _ response: NetOptResponse, _ newFields: HeaderFields, _ fetch: Fetch
  ) -> NetOptResponse {
    let received = cache.now()
    let updated = Freshening.updated(
      entry, with: newFields, for: cacheRequest, requested: fetch.requested, received: received)
    let isKept = keepUpdated(updated, after: newFields, fetch)
    // If the updated entry must not be stored, or varies by something that no request contains (`Vary: *`),
    // only this call gets it.
    fetch.leader?.complete(isKept ? .entry(updated) : .unshared)
    return self.response(validated: updated, response, fetch, isStored: isKept)
  }

  /// Handles a response other than a 304.
  private func handleResponse(
    _ response: NetOptResponse, _ fetch: Fetch, _ next: InterceptorChain
  ) async -> NetOptResponse {
    let fields = response.headers
    let received = cache.now()
    var (response, fetch) = (response, fetch)
    // A response is never older than the change that its own request made, so this change does not keep it
    // from being stored. A change by another request since then does.
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

  /// Whether waiting calls share a 5xx response, which is not stored. If each call asked for itself, a
  /// failing server would get all their requests at once.
  private func isSharedServerError(
    _ status: Int, _ fields: HeaderFields, _ control: CacheControl, _ fetch: Fetch
  ) -> Bool {
    fetch.leader != nil && CachePolicy.serverErrors.contains(status) && !control.noStore
      && Vary(fields) != .everything
  }

  /// Keeps the body, to store it at its end or only to give it to waiting calls.
  ///
  /// - Returns: false when the body is too large.
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
      begun: fetch.begun, deadline: fetch.deadline, changeCount: fetch.changeCount, shouldStore: isStored)
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

  /// The time limit of a refresh when its call has no timeout.
  private static let longestRefresh = Duration.seconds(300)

  /// Refreshes a stale entry in the background, unless a fetch of it is already running or the origin has
  /// `mostRefreshes`.
  func refresh(_ entry: CacheEntry, _ next: InterceptorChain) {
    let origin = request.url.origin
    guard isShared, cache.beginRefresh(of: origin) else { return }
    guard let leader = cache.inFlightFetches.lead(fetchKey(), request.headers) else {
      return cache.endRefresh(of: origin)
    }
    var fetch = Fetch(forward: .stale, rule: .stale, entry: entry)
    if case .http = rules { fetch.conditions = entry.terms.validators.conditions }
    fetch.leader = leader
    var chain = next
    var context = next.context
    context.plan = nil
    context.started = cache.timeSource.now()
    // No caller can cancel a refresh.
    context.deadline = context.started + (request.options.timeout ?? Self.longestRefresh)
    chain.context = context
    cache.inBackground { [fetch, chain, cache] in
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
  /// Whether the request itself is the reason to ask the origin, and not the state of the cache.
  fileprivate var isOfRequest: Bool {
    switch self {
    case .bypass, .request, .partial: true
    case .method, .uriMiss, .varyMiss, .miss, .stale: false
    }
  }
}

extension ResponseHead {
  /// The fields with the exact `Location` of this head. The text of the field may have lost bytes beyond
  /// ASCII, but a stored redirect must lead to the same URL as the original response.
  fileprivate func withExactLocation(_ fields: HeaderFields) -> HeaderFields {
    guard fields.contains(name: "Location"), let location = reference("Location") else { return fields }
    var exact = fields
    exact["Location"] = location
    return exact
  }
}
