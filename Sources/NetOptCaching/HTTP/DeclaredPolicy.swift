package import NetOptCore

/// Decides by what a caller declares of an API's answers.
package struct DeclaredPolicy: Sendable {
  /// By how much of its time an answer may expire early, at random, so that what was fetched together is not fetched
  /// together again.
  package static let jitter = 0.1

  /// What is declared.
  package let declaration: CacheOptions.Declaration

  /// Makes a policy.
  package init(_ declaration: CacheOptions.Declaration) { self.declaration = declaration }

  /// What is done about a request.
  package func decide(_ request: CacheRequest, _ entries: [CacheEntry], at now: Int64) -> CacheDecision {
    if request.control.noStore { return .bypass(.requestNoStore) }
    if request.conditions.isForOrigin { return .bypass(.condition) }
    guard declaration.timeToLive != nil || declaration.negativeTimeToLive != nil else {
      return .bypass(.notDeclared)
    }
    guard let entry = CachePolicy.selected(entries, for: request), let expiry = entry.declaredExpiry,
      request.decodes(entry)
    else { return .origin(for: request, .uriMiss, .nothingStored) }
    if request.control.noCache { return .origin(for: request, .request, .requestNoCache) }
    guard let part = RangePart(of: entry, for: request) else {
      return .origin(for: request, .partial, .otherRange)
    }
    if now < entry.received { return .origin(for: request, .stale, .clockSetBack) }
    if now < expiry {
      return .serve(CacheService(entry, part, .declaredFresh, outcome: .hit, refreshes: false))
    }
    // That something is not there is served no longer than was declared for that.
    if (200...299).contains(entry.status), case .serveAndRefresh(let window) = declaration.expired,
      now.subtractingClamped(expiry) < window.wholeMilliseconds
    {
      return .serve(CacheService(entry, part, .declaredRefresh, outcome: .stale, refreshes: true))
    }
    return .origin(for: request, .stale, .declaredStale)
  }

  /// Whether an answer is stored.
  package func storing(
    _ request: CacheRequest, status: Int, _ fields: HeaderFields, _ control: CacheControl
  ) -> Storing {
    if let refusal = Self.refusal(request, status, fields, control) { return .refused(refusal) }
    guard let time = timeToLive(status) else { return .refused(.notDeclared) }
    if time <= .zero { return .refused(.notDeclared) }
    return .stored((200...299).contains(status) ? .declared : .declaredNegative)
  }

  /// Until when an answer is fresh: milliseconds since 1970.
  ///
  /// - Parameter luck: from 0 to 1, by which it expires early.
  package func expiry(status: Int, received: Int64, luck: Double) -> Int64? {
    timeToLive(status).map { time in
      let whole = Double(time.wholeMilliseconds)
      return received + Int64(whole * (1 - Self.jitter * luck))
    }
  }

  /// What no caller declares away.
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

  private func timeToLive(_ status: Int) -> Duration? {
    switch status {
    case 200...299: declaration.timeToLive
    case _ where Freshness.heuristicStatuses.contains(status) && status >= 400: declaration.negativeTimeToLive
    default: nil
    }
  }
}

extension Duration {
  /// Milliseconds, rounded down; at least zero.
  package var wholeMilliseconds: Int64 { max(nanoseconds / 1_000_000, 0) }
}
