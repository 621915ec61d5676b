package import NetOptCore

/// The cache policy of `api` mode. In this mode the caller declares how long responses are fresh.
package struct DeclaredPolicy: Sendable {
  /// The largest fraction of the time to live by which an entry expires early. The cache chooses a random
  /// fraction up to this one for each entry. So responses that were fetched together expire at different
  /// times.
  package static let jitter = 0.1

  /// The caller's declaration.
  package let declaration: CacheOptions.Declaration

  /// Makes a policy.
  package init(_ declaration: CacheOptions.Declaration) { self.declaration = declaration }

  /// Decides how to answer a request.
  ///
  /// - Parameters:
  ///   - entries: the entries stored for the key, newest first.
  ///   - now: the current time, in milliseconds since 1970.
  package func decide(_ request: CacheRequest, _ entries: [CacheEntry], at now: Int64) -> CacheDecision {
    if request.control.noStore { return .bypass(.requestNoStore) }
    if request.conditions.isForOrigin { return .bypass(.condition) }
    guard declaration.timeToLive != nil || declaration.negativeTimeToLive != nil else {
      return .bypass(.notDeclared)
    }
    guard let entry = CachePolicy.selected(entries, for: request), let expiry = entry.declaredExpiry,
      request.acceptsCoding(of: entry)
    else { return .origin(for: request, .uriMiss, .nothingStored) }
    if request.control.noCache { return .origin(for: request, .request, .requestNoCache) }
    guard let part = ResponsePart(of: entry, for: request) else {
      return .origin(for: request, .partial, .otherRange)
    }
    if now < entry.received { return .origin(for: request, .stale, .clockSetBack) }
    if now < expiry {
      return .serve(CachedAnswer(entry, part, .declaredFresh, outcome: .hit, refreshes: false))
    }
    // An error response is not served after its declared time to live.
    if (200...299).contains(entry.status), case .serveAndRefresh(let window) = declaration.expired,
      now.subtractingClamped(expiry) < window.wholeMilliseconds
    {
      return .serve(CachedAnswer(entry, part, .declaredRefresh, outcome: .stale, refreshes: true))
    }
    return .origin(for: request, .stale, .declaredStale)
  }

  /// Decides whether to store a response.
  package func storing(
    _ request: CacheRequest, status: Int, _ fields: HeaderFields, _ control: CacheControl
  ) -> Storing {
    if let refusal = Self.refusal(request, status, fields, control) { return .refused(refusal) }
    guard let time = timeToLive(status) else { return .refused(.notDeclared) }
    if time <= .zero { return .refused(.notDeclared) }
    return .stored((200...299).contains(status) ? .declared : .declaredNegative)
  }

  /// When a response expires, in milliseconds since 1970; `nil` when the caller declares no time to live for
  /// its status.
  ///
  /// - Parameters:
  ///   - received: when the response head was received, in milliseconds since 1970.
  ///   - jitterShare: a random number from 0 to 1. The time to live is shorter by `jitter * jitterShare` of
  ///     its length.
  package func expiry(status: Int, received: Int64, jitterShare: Double) -> Int64? {
    timeToLive(status).map { time in
      let whole = Double(time.wholeMilliseconds)
      return received + Int64(whole * (1 - Self.jitter * jitterShare))
    }
  }

  /// The rule that forbids storing a response even if the caller declares a time to live; `nil` when no rule
  /// forbids it.
  static func refusal(
    _ request: CacheRequest, _ status: Int, _ fields: HeaderFields, _ control: CacheControl
  ) -> CacheRule? {
    if request.control.noStore { return .requestNoStore }
    if control.noStore { return .noStore }
    if request.method == .head { return .methodNotStored }
    if status == 206 { return .partialContent }
    if status == 226 { return .statusNotStored }
    if request.range != nil, status != 200 { return .statusNotStored }
    if Vary(fields) == .everything { return .varyStar }
    return nil
  }

  /// The declared time to live for a status: `timeToLive` for 200 to 299, `negativeTimeToLive` for errors
  /// that are cacheable by default; `nil` for others.
  private func timeToLive(_ status: Int) -> Duration? {
    switch status {
    case 200...299: declaration.timeToLive
    case _ where Freshness.heuristicStatuses.contains(status) && status >= 400: declaration.negativeTimeToLive
    default: nil
    }
  }
}

extension Duration {
  /// The duration in milliseconds, rounded down; 0 for a negative duration.
  package var wholeMilliseconds: Int64 { max(nanoseconds / 1_000_000, 0) }
}
