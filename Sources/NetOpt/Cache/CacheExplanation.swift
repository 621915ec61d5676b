package import NetOptCaching
package import NetOptCore
package import NetOptRouting

/// What the cache has stored for a request, and what it decides for this request.
package struct CacheExplanation: Sendable {
  /// The stored responses of the request's key, the newest first.
  package let entries: [CacheEntry]
  /// The last eviction of an entry of the request's key from the disk: when, in milliseconds since 1970, and
  /// why. `nil` when no eviction is known.
  package let eviction: (moment: Int64, reason: EvictionReason)?
  /// The decision for the request with these entries.
  package let decision: CacheDecision
  /// When the decision was made, by the cache's clock, in milliseconds since 1970.
  package let moment: Int64
  /// The URL of the request.
  package let url: HTTPURL
  /// The response, when the caller has also performed the request; otherwise `nil`.
  package var response: NetOptResponse?

  /// Reads the entries of a cache directory and explains what they mean for a request. Uses no network, and
  /// changes nothing in the directory.
  ///
  /// - Parameters:
  ///   - configuration: the cache configuration, with the directory.
  ///   - signing: how the client would sign the request.
  ///   - userAgent: the `User-Agent` of a request whose caller sets none.
  ///   - tls: the TLS settings of the client.
  ///   - list: the IP list of the client, whose pins hold.
  ///   - warn: receives errors of the directory.
  /// - Throws: `invalidRequest` for a request that does not use the cache; `unreadableFile` for a seed pack
  ///   or a file of the TLS settings.
  package static func of(
    _ request: NetOptRequest, _ configuration: ClientConfiguration.Cache,
    signing: ClientConfiguration.Signing? = nil, userAgent: String = ClientConfiguration().userAgent,
    tls: ClientConfiguration.TLS = ClientConfiguration.TLS(), list: EndpointList? = nil,
    warn: @escaping @Sendable (NetOptError) -> Void
  ) async throws(NetOptError) -> CacheExplanation {
    let cache = try ResponseCache(
      configuration, SystemTimeSource(), signing: signing, proxies: ProxyChoice(.environment),
      settingsDigest: try configuration.settingsDigest(
        try LoadedTLS(tls).with(listPins: list?.pins ?? [:])), userAgent: userAgent,
      mayChange: false,
      warn: warn)
    guard let call = CacheCall(request, cache) else {
      throw NetOptError(.invalidRequest, phase: .cache, "netopt does not use the cache for this request")
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
  /// The decision in one word (`hit`, `stale`, `validate`, `fetch`, `bypass` or `refuse`), and the rule
  /// behind it.
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
  /// Whether the entry is fresh, for how many more seconds, and by which rule. An entry of `http` mode with
  /// `no-cache` counts as stale, because the origin must validate it before each use. `seconds` is negative
  /// after the end of the freshness. It is `nil` for a versioned entry, and when the clock was set back.
  ///
  /// - Parameter now: the present moment, in milliseconds since 1970.
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
