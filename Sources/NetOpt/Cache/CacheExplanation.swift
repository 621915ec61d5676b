package import NetOptCaching
package import NetOptCore

/// What a cache knows of a request, and does about it.
package struct CacheExplanation: Sendable {
  /// What is stored, the newest first.
  package let entries: [CacheEntry]
  /// When the last entry was evicted from the disk: milliseconds since 1970, and why.
  package let eviction: (moment: Int64, reason: EvictionReason)?
  /// What is done about the request with what is stored.
  package let decision: CacheDecision
  /// When that was decided: milliseconds since 1970.
  package let moment: Int64
  /// What was requested.
  package let url: HTTPURL
  /// What came of the request, when it was performed.
  package var response: NetOptResponse?

  /// Looks at what is stored in a directory, without the network. Looking changes nothing there.
  ///
  /// - Parameters:
  ///   - signing: how the request would be signed.
  ///   - userAgent: what requests have in `User-Agent` when their caller sets none.
  ///   - authorities: the file with the authorities that would be believed instead of the system's.
  ///   - proxy: which proxy the request would go through.
  ///   - warn: is told what is wrong with the directory.
  /// - Throws: `invalidRequest` for one that is never answered from a cache; `unreadableFile` for a seed pack or the authorities.
  package static func of(
    _ request: NetOptRequest, _ configuration: ClientConfiguration.Cache,
    signing: ClientConfiguration.Signing? = nil, userAgent: String = ClientConfiguration().userAgent,
    authorities: String? = nil, proxy: ClientConfiguration.Proxy = .environment,
    warn: @escaping @Sendable (NetOptError) -> Void
  ) async throws(NetOptError) -> CacheExplanation {
    let cache = try ResponseCache(
      configuration, SystemTimeSource(), signing: signing, proxies: ProxyChoice(proxy),
      trust: try configuration.trust(authorities: authorities), userAgent: userAgent, changes: false,
      warn: warn)
    guard let call = CacheCall(request, cache) else {
      throw NetOptError(.invalidRequest, phase: .cache, "the cache is not used for such a request")
    }
    let entries = await cache.store.entries(for: call.key)
    let eviction = await cache.store.disk?.eviction(of: call.key)
    let decision = call.decide(entries)
    await cache.store.shutdown()
    return CacheExplanation(
      entries: entries, eviction: eviction ?? nil, decision: decision, moment: configuration.now(),
      url: request.url)
  }
}

extension CacheDecision {
  /// What is done, in a word, and what decided.
  package var explained: (word: String, rule: CacheRule) {
    switch self {
    case .serve(let service): (service.outcome.rawValue, service.rule)
    case .validate(_, let conditions, _, let rule): (conditions.isEmpty ? "fetch" : "validate", rule)
    case .fetch(_, let rule): ("fetch", rule)
    case .bypass(let rule): ("bypass", rule)
    case .refuse(let rule): ("refuse", rule)
    }
  }
}

extension CacheEntry {
  /// Whether the entry is fresh, for how many seconds it stays so, and what says that.
  package func freshness(at now: Int64) -> (isFresh: Bool, seconds: Int64?, rule: CacheRule) {
    if now < received, resourceVersion == nil { return (false, nil, .clockSetBack) }
    if let declaredExpiry {
      let left = declaredExpiry - now
      return (left > 0, left / 1000, left > 0 ? .declaredFresh : .declaredStale)
    }
    if resourceVersion != nil { return (true, nil, .versioned) }
    let left = terms.timeLeft(at: now)
    if terms.control.noCache { return (false, left / 1000, .noCache) }
    return (left > 0, left / 1000, terms.freshness.rule)
  }
}
