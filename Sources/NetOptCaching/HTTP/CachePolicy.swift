package import NetOptCore

/// The cache policy of RFC 9111 for a private cache, with RFC 5861 and RFC 8246. It decides how to answer a
/// request at a given time from the entries that are stored for its URL. It has no state and does no I/O. All
/// times are in milliseconds since 1970, all durations in milliseconds.
package struct CachePolicy: Sendable {
  /// How long a stale response may be used while the origin is unreachable, in milliseconds since the
  /// response became stale. A directive such as `must-revalidate` forbids this use (section 4.2.4). Default:
  /// 86,400,000, which is one day.
  package var staleWhenUnreachable: Int64

  /// The 5xx statuses that `stale-if-error` covers (RFC 5861, section 4).
  package static let serverErrors: Set = [500, 502, 503, 504]

  /// Makes a policy.
  package init(staleWhenUnreachable: Int64 = 86_400_000) {
    self.staleWhenUnreachable = staleWhenUnreachable
  }

  /// Decides how to answer a request.
  ///
  /// - Parameters:
  ///   - entries: the entries stored for the key, newest first.
  ///   - now: the current time, in milliseconds since 1970.
  package func decide(
    _ request: CacheRequest, _ entries: [CacheEntry], at now: Int64
  ) -> CacheDecision {
    if !request.isAnswerable { return .fetch(.method, .method) }
    if request.control.noStore { return .bypass(.requestNoStore) }
    if request.conditions.isForOrigin { return .bypass(.condition) }
    guard let entry = Self.selected(entries, for: request) else {
      return missing(request, entries.isEmpty ? .uriMiss : .varyMiss)
    }
    if !request.acceptsCoding(of: entry) { return missing(request, .miss, .encodedOtherwise) }
    return decide(request, entry, at: now)
  }

  /// The entry whose selectors match the request. A store has at most one (`CacheEntry.overlaps`).
  package static func selected(_ entries: [CacheEntry], for request: CacheRequest) -> CacheEntry? {
    entries.first { Vary.selects($0, request) }
  }

  /// The decision for a request that no stored response can answer.
  ///
  /// - Parameter rule: the rule that decided; `nil` for the rule that `forward` implies.
  private func missing(
    _ request: CacheRequest, _ forward: CacheStatus.Forward, _ rule: CacheRule? = nil
  ) -> CacheDecision {
    .origin(for: request, forward, rule ?? (forward == .varyMiss ? .otherSelectors : .nothingStored))
  }

  /// Decides how to answer a request for which an entry is stored.
  private func decide(_ request: CacheRequest, _ entry: CacheEntry, at now: Int64) -> CacheDecision {
    let use = usability(of: entry, for: request, at: now)
    guard let refresh = use.refresh else {
      if request.control.onlyIfCached { return .refuse(.onlyIfCached) }
      return validation(of: entry, use.forward, use.rule, request)
    }
    guard let part = ResponsePart(of: entry, for: request) else {
      if request.control.onlyIfCached { return .refuse(.onlyIfCached) }
      return .fetch(.partial, .otherRange)
    }
    return .serve(CachedAnswer(entry, part, use.rule, outcome: use.outcome, refreshes: refresh))
  }

  /// The decision to ask the origin whether an entry is still valid.
  private func validation(
    of entry: CacheEntry, _ forward: CacheStatus.Forward, _ rule: CacheRule, _ request: CacheRequest
  ) -> CacheDecision {
    // The cache adds its conditions only to a GET without a condition or range of the caller. It sends all
    // other requests unchanged.
    let isPlain = !request.conditions.isForCache && request.range == nil && request.method == .get
    return .validate(entry, isPlain ? entry.terms.validators.conditions : [:], forward, rule)
  }

  /// The result of the check whether an entry may answer without a request to the origin.
  private struct Usability {
    /// The rule that decided.
    var rule: CacheRule
    /// The reason for a request to the origin, if the entry must not be used.
    var forward: CacheStatus.Forward = .stale
    /// Whether the entry is fresh (`hit`) or stale, if it may be used.
    var outcome: CacheStatus.Outcome = .hit
    /// Whether the cache also revalidates the entry in the background. `nil` when the entry must not be used
    /// without a request to the origin.
    var refresh: Bool?
  }

  /// Checks whether an entry may answer without a request to the origin.
  private func usability(
    of entry: CacheEntry, for request: CacheRequest, at now: Int64
  ) -> Usability {
    let terms = entry.terms
    let age = terms.age(at: now)
    let left = terms.freshness.lifetime - age
    let directives = request.control
    if directives.noCache { return Usability(rule: .requestNoCache, forward: .request) }
    if terms.control.noCache { return Usability(rule: .noCache) }
    if now < terms.received { return Usability(rule: .clockSetBack) }
    if left > 0 {
      // The request's `max-age` and `min-fresh` do not apply to an immutable response, so a reload with
      // `max-age=0` does not fetch it again (RFC 8246, section 2).
      if terms.control.immutable { return Usability(rule: .immutable, refresh: false) }
      if let most = directives.maxAge, age > most || most == 0 {
        return Usability(rule: .requestMaxAge, forward: .request)
      }
      if let least = directives.minFresh, left < least {
        return Usability(rule: .requestMinFresh, forward: .request)
      }
      return Usability(rule: terms.freshness.rule, refresh: false)
    }
    if terms.control.mustRevalidate { return Usability(rule: .mustRevalidate) }
    if let most = directives.maxAge, age > most { return Usability(rule: .requestMaxAge, forward: .request) }
    if directives.minFresh != nil { return Usability(rule: .requestMinFresh, forward: .request) }
    if let most = directives.maxStale, -left <= most {
      return Usability(rule: .maxStale, outcome: .stale, refresh: false)
    }
    if let window = terms.control.staleWhileRevalidate, -left <= window {
      return Usability(rule: .staleWhileRevalidate, outcome: .stale, refresh: true)
    }
    return Usability(rule: terms.freshness.isExplicit ? .stale : terms.freshness.rule)
  }

  /// Decides whether a stored response answers a request after the request to the origin failed. It failed if
  /// no response arrived, or if the response has one of the statuses in `serverErrors`.
  ///
  /// - Parameters:
  ///   - status: the status of the response; `nil` when no response arrived.
  ///   - now: the current time, in milliseconds since 1970.
  /// - Returns: the stored response to serve, or `nil` when it must not be used.
  package func afterFailure(
    _ status: Int?, _ request: CacheRequest, _ entry: CacheEntry, at now: Int64
  ) -> CachedAnswer? {
    let terms = entry.terms
    if let status, !Self.serverErrors.contains(status) { return nil }
    // With `no-cache` in the request, the caller wants a new response, so the stored one must not answer.
    if request.control.noCache || terms.control.noCache || request.method != .get && request.method != .head {
      return nil
    }
    let staleness = terms.age(at: now) - terms.freshness.lifetime
    if staleness >= 0, terms.control.mustRevalidate { return nil }
    guard let part = ResponsePart(of: entry, for: request) else { return nil }
    let window = [terms.control.staleIfError, request.control.staleIfError].compactMap { $0 }.max()
    let rule: CacheRule
    if let window, staleness <= window {
      rule = .staleIfError
    } else if status == nil, staleness <= staleWhenUnreachable {
      rule = .disconnected
    } else {
      return nil
    }
    return CachedAnswer(entry, part, rule, outcome: staleness >= 0 ? .stale : .hit, refreshes: false)
  }
}

/// The decision how to answer a request. In its cases, the `CacheRule` is the rule that decided, and the
/// `Forward` is the reason for the request to the origin.
package enum CacheDecision: Sendable {
  /// A stored response answers the request, without a request to the origin.
  case serve(CachedAnswer)
  /// The request goes to the origin, which may confirm that the stored response is still valid. The header
  /// fields are the conditions that the cache adds to the request, such as `If-None-Match`. They are empty
  /// when the stored response has no validator, or when the cache must not change the request.
  case validate(CacheEntry, HeaderFields, CacheStatus.Forward, CacheRule)
  /// The request goes to the origin, because no stored response can answer it.
  case fetch(CacheStatus.Forward, CacheRule)
  /// The request goes to the origin, and the response is not stored.
  case bypass(CacheRule)
  /// The cache answers with the status 504, because `only-if-cached` forbids a request to the origin.
  case refuse(CacheRule)

  /// Returns the decision for a request that may have `only-if-cached` (RFC 9111, section 5.2.1.7). With this
  /// directive, a decision to ask the origin becomes `refuse`, and a served entry is not refreshed.
  package func applyingOnlyIfCached(of request: CacheRequest) -> CacheDecision {
    guard request.control.onlyIfCached else { return self }
    return switch self {
    case .serve(let service): .serve(service.withoutRefresh)
    case .refuse: self
    case .validate, .fetch, .bypass: .refuse(.onlyIfCached)
    }
  }

  /// The decision to send the request to the origin, or to refuse it when it has `only-if-cached`.
  static func origin(
    for request: CacheRequest, _ forward: CacheStatus.Forward, _ rule: CacheRule
  ) -> CacheDecision {
    request.control.onlyIfCached ? .refuse(.onlyIfCached) : .fetch(forward, rule)
  }
}

/// A stored response that answers a request.
package struct CachedAnswer: Sendable {
  /// The stored response.
  package let entry: CacheEntry
  /// The part of the entry that answers the request.
  package let part: ResponsePart
  /// The rule that decided.
  package let rule: CacheRule
  /// `hit` for a fresh entry, `stale` for a stale one.
  package let outcome: CacheStatus.Outcome
  /// Whether the cache also refreshes the entry in the background.
  package let refreshes: Bool

  /// Makes an answer from a stored response.
  package init(
    _ entry: CacheEntry, _ part: ResponsePart, _ rule: CacheRule, outcome: CacheStatus.Outcome,
    refreshes: Bool
  ) {
    self.entry = entry
    self.part = part
    self.rule = rule
    self.outcome = outcome
    self.refreshes = refreshes
  }

  /// A copy without the background refresh.
  var withoutRefresh: CachedAnswer {
    refreshes ? CachedAnswer(entry, part, rule, outcome: outcome, refreshes: false) : self
  }
}
