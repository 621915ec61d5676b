package import NetOptCore

/// Decides as RFC 9111 has a private cache decide, with RFC 5861 and RFC 8246: what is done about a request, with what is
/// stored for its URL, at a moment. Pure; times are milliseconds since 1970.
package struct CachePolicy: Sendable {
  /// For how long after it went stale a response may be used when the origin cannot be reached and nothing forbids it
  /// (section 4.2.4).
  package var staleWhenUnreachable: Int64

  /// Statuses that say that the server is in trouble (RFC 5861, section 4).
  package static let troubles: Set = [500, 502, 503, 504]

  /// Makes a policy.
  package init(staleWhenUnreachable: Int64 = 86_400_000) {
    self.staleWhenUnreachable = staleWhenUnreachable
  }

  /// What is done about a request.
  ///
  /// - Parameter entries: what is stored for the key, the newest first.
  package func decide(
    _ request: CacheRequest, _ entries: [CacheEntry], at now: Int64
  ) -> CacheDecision {
    if !request.isAnswerable { return .fetch(.method, .method) }
    if request.control.noStore { return .bypass(.requestNoStore) }
    if request.conditions.isForOrigin { return .bypass(.condition) }
    guard let entry = Self.selected(entries, for: request) else {
      return missing(request, entries.isEmpty ? .uriMiss : .varyMiss)
    }
    if !request.decodes(entry) { return missing(request, .miss, .encodedOtherwise) }
    return decide(request, entry, at: now)
  }

  /// The entry that was stored for such a request: a store has one at most (`CacheEntry.overlaps`).
  package static func selected(_ entries: [CacheEntry], for request: CacheRequest) -> CacheEntry? {
    entries.first { Vary.selects($0, request) }
  }

  private func missing(
    _ request: CacheRequest, _ forward: CacheStatus.Forward, _ rule: CacheRule? = nil
  ) -> CacheDecision {
    .origin(for: request, forward, rule ?? (forward == .varyMiss ? .otherSelectors : .nothingStored))
  }

  private func decide(_ request: CacheRequest, _ entry: CacheEntry, at now: Int64) -> CacheDecision {
    let use = usability(of: entry, for: request, at: now)
    guard let refresh = use.refresh else {
      if request.control.onlyIfCached { return .refuse(.onlyIfCached) }
      return validation(of: entry, use.forward, use.rule, request)
    }
    guard let part = RangePart(of: entry, for: request) else {
      if request.control.onlyIfCached { return .refuse(.onlyIfCached) }
      return .fetch(.partial, .otherRange)
    }
    return .serve(CacheService(entry, part, use.rule, outcome: use.outcome, refreshes: refresh))
  }

  private func validation(
    of entry: CacheEntry, _ forward: CacheStatus.Forward, _ rule: CacheRule, _ request: CacheRequest
  ) -> CacheDecision {
    // A condition or a range of the request's own goes to the origin as it is; the answer is looked at when it comes. HEAD is
    // written through.
    let isPlain = !request.conditions.isForCache && request.range == nil && request.method == .get
    return .validate(entry, isPlain ? entry.terms.validators.conditions : [:], forward, rule)
  }

  /// Whether an entry may be used without asking the origin.
  private struct Usability {
    var rule: CacheRule
    var forward: CacheStatus.Forward = .stale
    var outcome: CacheStatus.Outcome = .hit
    /// Whether it is refreshed beside its use; `nil` when it may not be used.
    var refresh: Bool?
  }

  private func usability(
    of entry: CacheEntry, for request: CacheRequest, at now: Int64
  ) -> Usability {
    let terms = entry.terms
    let age = terms.age(at: now)
    let left = terms.freshness.lifetime - age
    let wanted = request.control
    if wanted.noCache { return Usability(rule: .requestNoCache, forward: .request) }
    if terms.control.noCache { return Usability(rule: .noCache) }
    if now < terms.received { return Usability(rule: .clockSetBack) }
    if left > 0 {
      // A reload does not ask for what is immutable.
      if terms.control.immutable { return Usability(rule: .immutable, refresh: false) }
      if let most = wanted.maxAge, age > most || most == 0 {
        return Usability(rule: .requestMaxAge, forward: .request)
      }
      if let least = wanted.minFresh, left < least {
        return Usability(rule: .requestMinFresh, forward: .request)
      }
      return Usability(rule: terms.freshness.rule, refresh: false)
    }
    if terms.control.mustRevalidate { return Usability(rule: .mustRevalidate) }
    if let most = wanted.maxAge, age > most { return Usability(rule: .requestMaxAge, forward: .request) }
    if wanted.minFresh != nil { return Usability(rule: .requestMinFresh, forward: .request) }
    if let most = wanted.maxStale, -left <= most {
      return Usability(rule: .maxStale, outcome: .stale, refresh: false)
    }
    if let window = terms.control.staleWhileRevalidate, -left <= window {
      return Usability(rule: .staleWhileRevalidate, outcome: .stale, refresh: true)
    }
    return Usability(rule: terms.freshness.isExplicit ? .stale : terms.freshness.rule)
  }

  /// Whether a stored response takes the place of an answer that did not come, or of one that says that the server is in
  /// trouble.
  ///
  /// - Parameter status: the answer's status; `nil` when there was none.
  /// - Returns: what is served, or `nil` when the stored response may not be used.
  package func afterFailure(
    _ status: Int?, _ request: CacheRequest, _ entry: CacheEntry, at now: Int64
  ) -> CacheService? {
    let terms = entry.terms
    if let status, !Self.troubles.contains(status) { return nil }
    // Asked for by the caller: a reload is not answered with what it wanted to get rid of.
    if request.control.noCache || terms.control.noCache || request.method != .get && request.method != .head {
      return nil
    }
    let staleness = terms.age(at: now) - terms.freshness.lifetime
    if staleness >= 0, terms.control.mustRevalidate { return nil }
    guard let part = RangePart(of: entry, for: request) else { return nil }
    let window = [terms.control.staleIfError, request.control.staleIfError].compactMap { $0 }.max()
    let rule: CacheRule
    if let window, staleness <= window {
      rule = .staleIfError
    } else if status == nil, staleness <= staleWhenUnreachable {
      rule = .disconnected
    } else {
      return nil
    }
    return CacheService(entry, part, rule, outcome: staleness >= 0 ? .stale : .hit, refreshes: false)
  }
}

/// What is done about a request.
package enum CacheDecision: Sendable {
  /// A stored response answers it.
  case serve(CacheService)
  /// The origin is asked whether a stored response still holds: with these fields, none when it has no validator.
  case validate(CacheEntry, HeaderFields, CacheStatus.Forward, CacheRule)
  /// The origin is asked.
  case fetch(CacheStatus.Forward, CacheRule)
  /// The origin is asked, and nothing of the answer is stored.
  case bypass(CacheRule)
  /// The answer is 504: the request wants none of the origin.
  case refuse(CacheRule)

  /// The same unless the request wants none of the origin, whose answer is 504 then, by whatever rules was decided (RFC 9111,
  /// section 5.2.1.7).
  package func honouring(_ request: CacheRequest) -> CacheDecision {
    guard request.control.onlyIfCached else { return self }
    return switch self {
    case .serve(let service): .serve(service.withoutRefresh)
    case .refuse: self
    case .validate, .fetch, .bypass: .refuse(.onlyIfCached)
    }
  }

  /// The origin is asked, unless the request wants none of it.
  static func origin(
    for request: CacheRequest, _ forward: CacheStatus.Forward, _ rule: CacheRule
  ) -> CacheDecision {
    request.control.onlyIfCached ? .refuse(.onlyIfCached) : .fetch(forward, rule)
  }
}

/// The use of a stored response as an answer.
package struct CacheService: Sendable {
  /// What was stored.
  package let entry: CacheEntry
  /// The part of it that is the answer.
  package let part: RangePart
  /// What decided.
  package let rule: CacheRule
  /// `hit` or `stale`.
  package let outcome: CacheStatus.Outcome
  /// Whether it is refreshed beside its use.
  package let refreshes: Bool

  /// Makes one.
  package init(
    _ entry: CacheEntry, _ part: RangePart, _ rule: CacheRule, outcome: CacheStatus.Outcome, refreshes: Bool
  ) {
    self.entry = entry
    self.part = part
    self.rule = rule
    self.outcome = outcome
    self.refreshes = refreshes
  }

  /// The same, and the origin is not asked beside it.
  var withoutRefresh: CacheService {
    refreshes ? CacheService(entry, part, rule, outcome: outcome, refreshes: false) : self
  }
}
