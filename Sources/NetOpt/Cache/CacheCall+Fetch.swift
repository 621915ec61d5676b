import NetOptCaching
import NetOptCore

/// Asking the origin.
extension CacheCall {
  /// A fetch: why, and for whom.
  struct Fetch: Sendable {
    var forward: CacheStatus.Forward
    var rule: CacheRule
    /// What is stored, and stale.
    var entry: CacheEntry?
    /// Whether something is stored that was not asked for.
    var hasOthers = false
    /// The fields that ask whether it still holds.
    var conditions = HeaderFields()
    /// The duty to tell others of the outcome.
    var ticket: Flights.Ticket?
    /// Whether the answer may be stored.
    var stores = true
    /// When its request was sent, by the date and by the clock that nobody sets.
    var requested: Int64 = 0
    var begun = MonotonicInstant(nanoseconds: 0)
    /// When the call has to be over, or `nil`.
    var deadline: MonotonicInstant?
    /// How often the key's resource had been changed when it began.
    var changes: UInt32 = 0

    /// The same, sent when the request was that a response answers. Connections, handshakes and failed attempts may have taken long, and the origin
    /// may have answered later requests meanwhile.
    func sent(for response: NetOptResponse, of chain: InterceptorChain) -> Fetch {
      let sent = chain.started + response.timings.untilSent
      guard sent > begun else { return self }
      var fetch = self
      fetch.requested += (sent - begun).wholeMilliseconds
      fetch.begun = sent
      return fetch
    }
  }

  /// Goes on when no stored response answers at once.
  ///
  /// - Parameter hasEntries: whether something is stored for the key.
  func goOn(
    _ decision: CacheDecision, hasEntries: Bool, _ next: InterceptorChain
  ) async throws(NetOptError) -> NetOptResponse {
    switch decision {
    case .serve(let service): return serve(service, refreshingWith: next)
    case .refuse(let rule):
      return gatewayTimeout(rule, "the request wants a stored response, and there is none")
    case .bypass(let rule):
      var fetch = Fetch(forward: .bypass, rule: rule)
      fetch.stores = false
      fetch.hasOthers = hasEntries
      return try await perform(fetch, next)
    case .fetch(let forward, let rule):
      return try await share(
        Fetch(forward: forward, rule: rule, hasOthers: hasEntries && forward.isOfRequest), next)
    case .validate(let entry, let conditions, let forward, let rule):
      return try await share(Fetch(forward: forward, rule: rule, entry: entry, conditions: conditions), next)
    }
  }

  /// Fetches, or waits for the same fetch of somebody else.
  ///
  /// - Parameters:
  ///   - isAgain: whether it has waited once, and learned then that the answer depends on fields of the request.
  ///   - isAlone: whether only those wait for the fetch whose requests have the same fields: the one of others ended in a way that their
  ///     requests may have been the cause of.
  private func share(
    _ fetch: Fetch, _ next: InterceptorChain, isAgain: Bool = false, isAlone: Bool = false
  ) async throws(NetOptError) -> NetOptResponse {
    guard isShared else { return try await perform(fetch, next) }
    var fetch = fetch
    switch await cache.flights.join(flightKey(isAlone: isAlone), request.headers, until: next.deadline) {
    case .lead(let ticket):
      fetch.ticket = ticket
      // The last fetch may have ended between the look and the start of this one.
      if case .serve(let service) = decide(cache.store.memory.entries(for: key)) {
        ticket.complete(.entry(service.entry))
        return serve(service, refreshingWith: next)
      }
      return try await perform(fetch, next)
    case .entry(let entry):
      switch decide([entry]) {
      case .serve(let service): return serve(service, isCollapsed: true, refreshingWith: next)
      case .validate(let entry, let conditions, _, _): (fetch.entry, fetch.conditions) = (entry, conditions)
      default:
        // Now it is known what the answer depends on: who asks alike waits for one fetch of theirs.
        if !isAgain, !Vary.selects(entry, wanted) {
          return try await share(fetch, next, isAgain: true, isAlone: isAlone)
        }
      }
    case .unshared: break
    // Those who are alike have one fetch, which is not of others.
    case .ofOthers: if !isAlone { return try await share(fetch, next, isAgain: isAgain, isAlone: true) }
    case .answered(let status):
      if let service = await storedNow(fetch, next).flatMap({ afterFailure(status, $0) }) {
        return response(service, isCollapsed: true)
      }
    case .trouble(let entry):
      if wanted.decodes(entry), Vary.selects(entry, wanted) { return response(trouble: entry, fetch) }
    case .failed(let error): return try await recover(from: error, fetch, next)
    }
    return try await perform(fetch, next)
  }

  /// What the fetch is found by: the key, and the request's values of the fields that the stored responses depend on.
  private func flightKey(isAlone: Bool = false) -> Flights.Key {
    let names = Set(cache.store.memory.entries(for: key).flatMap { $0.selectors.map(\.name) })
    let selectors = names.isEmpty ? [] : Vary.fields(names.sorted()).selectors(of: wanted)
    return Flights.Key(
      key: key, selectors: selectors, request.options, version: version,
      fields: isAlone ? request.headers : nil)
  }

  /// Fetches.
  private func perform(_ fetch: Fetch, _ next: InterceptorChain) async throws(NetOptError) -> NetOptResponse {
    var fetch = fetch
    var forwarded = request
    for field in fetch.conditions { forwarded.headers[field.name] = field.value }
    fetch.requested = cache.now()
    fetch.begun = cache.timeSource.now()
    fetch.deadline = next.deadline
    fetch.changes = cache.changes.count(of: key)
    do throws(NetOptError) {
      let response = try await next.proceed(forwarded)
      fetch = fetch.sent(for: response, of: next)
      guard response.status == 304, !fetch.conditions.isEmpty, let entry = fetch.entry else {
        return await answered(response, fetch, next)
      }
      let news = response.head.withExactLocation(response.headers)
      if entry.terms.validators.admit(news, at: cache.now() / 1000) {
        return validated(entry, response, news, fetch)
      }
      // The 304 is about something else than what is stored (RFC 9111, section 4.3.4).
      fetch.conditions = [:]
      cache.forget(.overlapping(entry.selectors), for: key, begun: fetch.begun)
      let answer = try await next.proceed(request)
      return await answered(answer, fetch.sent(for: answer, of: next), next)
    } catch {
      fetch.ticket?.fail(error, deadline: fetch.deadline, at: cache.timeSource.now())
      return try await recover(from: error, fetch, next)
    }
  }

  private static let unreachable: Set<NetOptError.Code> = [
    .connectFailed, .proxyFailed, .sendFailed, .receiveFailed, .timeout, .nameNotFound, .resolverFailed,
    .protocolViolation,
  ]

  /// Answers in the place of an origin that could not be reached: with what is stored, or with the word that it may not be
  /// used.
  private func recover(
    from error: NetOptError, _ fetch: Fetch, _ next: InterceptorChain
  ) async throws(NetOptError) -> NetOptResponse {
    guard fetch.entry != nil, Self.unreachable.contains(error.code), case .http = rules else { throw error }
    if let entry = await storedNow(fetch, next), let service = afterFailure(nil, entry) {
      return response(service, error: error)
    }
    return gatewayTimeout(
      .unreachable, "the origin could not be reached: \(error.message)", route: error.route)
  }

  /// The stored response that the request selects now; `nil` when none was stored when the call was decided. The one of the decision may have been
  /// replaced or made invalid since.
  private func storedNow(_ fetch: Fetch, _ next: InterceptorChain) async -> CacheEntry? {
    guard fetch.entry != nil else { return nil }
    let entries = await cache.store.entries(for: key, within: cache.patience(until: next.deadline))
    return CachePolicy.selected(ofRules(entries), for: wanted)
  }

  // MARK: Answers of the origin

  /// The origin says that what is stored still holds.
  private func validated(
    _ entry: CacheEntry, _ response: NetOptResponse, _ news: HeaderFields, _ fetch: Fetch
  ) -> NetOptResponse {
    let received = cache.now()
    let updated = Freshening.updated(
      entry, with: news, for: wanted, requested: fetch.requested, received: received)
    let isKept = keepUpdated(updated, after: news, fetch)
    // What must not be kept, or depends on what no request shows, is for the one who asked.
    fetch.ticket?.complete(isKept ? .entry(updated) : .unshared)
    return self.response(validated: updated, response, fetch, isStored: isKept)
  }

  /// The origin gave an answer of its own.
  private func answered(
    _ response: NetOptResponse, _ fetch: Fetch, _ next: InterceptorChain
  ) async -> NetOptResponse {
    let fields = response.headers
    let received = cache.now()
    var (response, fetch) = (response, fetch)
    // An answer is not older than the change that its own request made. It may be older than a change that another request has made since.
    fetch.changes &+= invalidate(response.status, fields)
    if wanted.method == .head, fetch.stores {
      freshen(response.status, response.head.withExactLocation(fields), fetch, received)
    }
    if CachePolicy.troubles.contains(response.status), let entry = await storedNow(fetch, next),
      let service = afterFailure(response.status, entry)
    {
      fetch.ticket?.complete(.answered(response.status))
      return self.response(service, status: response.status)
    }
    let terms = ResponseTerms(
      status: response.status, fields: fields, requested: fetch.requested, received: received)
    let expiry = declaredExpiry(response.status, received: received)
    var storing = fetch.stores ? self.storing(response.status, fields, terms) : .refused(fetch.rule)
    let isShared = storing.isStored || isTrouble(response.status, fields, terms.control, fetch)
    if isShared, !keep(&response, fields, terms, fetch, received, expiry, isStored: storing.isStored) {
      storing = .refused(.tooLarge)
    } else if !isShared {
      fetch.ticket?.complete(.unshared)
    }
    if !storing.isStored { replaced(response.status, fields, terms.control, fetch) }
    response.cacheStatus = CacheStatus(
      .miss, by: fetch.rule, forward: fetch.forward, forwardedStatus: response.status,
      timeToLive: storing.isStored && version == nil
        ? (expiry.map { $0 - received } ?? terms.timeLeft(at: received)) / 1000 : nil, storing: storing.rule,
      isStored: storing.isStored)
    return response
  }

  /// Whether those who wait share an answer that is not stored: were each to ask for itself, a server in trouble would get
  /// all of their requests at once.
  private func isTrouble(_ status: Int, _ fields: HeaderFields, _ control: CacheControl, _ fetch: Fetch)
    -> Bool
  {
    fetch.ticket != nil && CachePolicy.troubles.contains(status) && !control.noStore
      && Vary(fields) != .everything
  }

  /// Keeps the body, to be stored at its end or only to be handed to those who wait.
  ///
  /// - Returns: false when it is too large.
  private func keep(
    _ response: inout NetOptResponse, _ fields: HeaderFields, _ terms: ResponseTerms, _ fetch: Fetch,
    _ received: Int64, _ expiry: Int64?, isStored: Bool
  ) -> Bool {
    if let length = response.head.first("Content-Length").flatMap({ Int($0) }), length > cache.entryLimit {
      fetch.ticket?.complete(.unshared)
      return false
    }
    let isDecoded = wanted.wantsDecoded && ContentCoding.isDecodable(fields)
    let stored = StoredFields.stored(
      response.head.withExactLocation(fields), control: terms.control, isDecoded: isDecoded,
      received: received)
    let draft = EntryDraft(
      cache: cache, ticket: fetch.ticket, key: key, selectors: Vary(fields).selectors(of: wanted),
      status: response.status, fields: stored,
      requested: fetch.requested, received: received,
      declaredExpiry: expiry, resourceVersion: version,
      begun: fetch.begun, deadline: fetch.deadline, changes: fetch.changes, isStored: isStored)
    if let whole = response.body.whole {
      guard whole.count <= cache.entryLimit else {
        fetch.ticket?.complete(.unshared)
        return false
      }
      draft.complete(whole)
      return true
    }
    let body = StoringBody(response.body, draft)
    fetch.ticket?.isReceiving(body)
    response.body = ResponseBody(body)
    return true
  }

  // MARK: Beside the call

  /// How long a refresh may take when its call may take any time.
  private static let longestRefresh = Duration.seconds(300)

  /// Fetches what is stored anew, beside the call, unless that is being done.
  func refresh(_ entry: CacheEntry, _ next: InterceptorChain) {
    let origin = request.url.origin
    guard isShared, cache.beginRefresh(of: origin) else { return }
    guard let ticket = cache.flights.lead(flightKey(), request.headers) else {
      return cache.endRefresh(of: origin)
    }
    var fetch = Fetch(forward: .stale, rule: .stale, entry: entry)
    if case .http = rules { fetch.conditions = entry.terms.validators.conditions }
    fetch.ticket = ticket
    var chain = next
    var context = next.context
    context.plan = nil
    context.started = cache.timeSource.now()
    // No caller cancels it.
    context.deadline = context.started + (request.options.timeout ?? Self.longestRefresh)
    chain.context = context
    cache.inBackground { [fetch, chain, cache] in
      defer { cache.endRefresh(of: origin) }
      guard let response = try? await perform(fetch, chain) else { return }
      // To its end: only then it is stored. What is too large to be stored is not waited for.
      guard response.cacheStatus.isStored else { return }
      _ = try? await response.body.collect(upTo: cache.entryLimit)
    }
  }
}

extension CacheStatus.Forward {
  /// Whether the request goes to the origin for what it asks, and not for what is stored.
  fileprivate var isOfRequest: Bool {
    switch self {
    case .bypass, .request, .partial: true
    case .method, .uriMiss, .varyMiss, .miss, .stale: false
    }
  }
}

extension ResponseHead {
  /// Fields of this head, whose `Location` may have lost as text what it says: a stored redirect leads where its answer led.
  fileprivate func withExactLocation(_ fields: HeaderFields) -> HeaderFields {
    guard fields.contains(name: "Location"), let location = reference("Location") else { return fields }
    var exact = fields
    exact["Location"] = location
    return exact
  }
}
