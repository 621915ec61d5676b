import NetOptCaching
import NetOptCore
import NetOptSigning

/// The rules for the use of a stored response by the RFC 9111 policy. Each function returns a description of
/// the broken rule, or `nil` when all its rules hold.
enum CacheUseRules {
  private static let policy = CachePolicy()

  /// Checks what the cache decides for the second request of a script when the entry is stored: before the
  /// request is sent, after it failed, and after its response.
  static func use(of entry: CacheEntry, _ script: CacheScript) -> String? {
    let request = script.second
    let decision = policy.decide(request, [entry], at: script.now).applyingOnlyIfCached(of: request)
    if let fault = decided(decision, entry, request, script.now) { return fault }
    // No response, the response of a failing server, and a good response, which no stored response may
    // replace.
    for status in [nil, 503, 200] {
      if let service = policy.afterFailure(status, request, entry, at: script.now),
        let fault = covered(service, status, request, script.now)
      {
        return fault
      }
    }
    return freshened(entry, script)
  }

  /// Checks the decision how to answer a request.
  private static func decided(
    _ decision: CacheDecision, _ entry: CacheEntry, _ request: CacheRequest, _ now: Int64
  ) -> String? {
    switch decision {
    case .serve(let service): return served(service, entry, request, now)
    case .refuse: return request.control.onlyIfCached ? nil : "it is refused for no reason"
    case .bypass:
      return request.control.noStore || request.conditions.isForOrigin
        ? nil : "the cache is bypassed for no reason"
    case .fetch: return request.control.onlyIfCached ? "the origin is asked, against only-if-cached" : nil
    case .validate(_, let conditions, _, _):
      if request.control.onlyIfCached { return "the origin is asked, against only-if-cached" }
      return conditions.lazy.compactMap { HeaderFields.fault(of: $0) }.first
    }
  }

  /// Checks a stored response that answers a request without a request to the origin.
  private static func served(
    _ service: CachedAnswer, _ entry: CacheEntry, _ request: CacheRequest, _ now: Int64
  ) -> String? {
    let (terms, wanted) = (entry.terms, request.control)
    let (left, age) = (terms.timeLeft(at: now), terms.age(at: now))
    if request.method != .get, request.method != .head { return "\(request.method) is answered" }
    if wanted.noStore || wanted.noCache || terms.control.noCache {
      return "it is used against no-store or no-cache"
    }
    if request.conditions.isForOrigin { return "a condition for the origin is answered" }
    if !Vary.selects(entry, request) { return "it is used for a request that Vary sets apart" }
    if (left > 0) != (service.outcome == .hit) { return "it is a \(service.outcome), fresh for \(left) ms" }
    if left <= 0, terms.control.mustRevalidate { return "it is used against must-revalidate" }
    if left > 0, let most = wanted.maxAge, age > most, !terms.control.immutable {
      return "it is used against the request's max-age"
    }
    if service.refreshes, left > 0 { return "what is fresh is refreshed" }
    let status = CacheStatus(service.outcome, by: service.rule, timeToLive: left / 1000)
    if (try? StructuredFieldParser.list(Array((status.text ?? "").utf8))) == nil {
      return "Cache-Status is no list: \(status.text ?? "")"
    }
    return outside(service.part, entry)
  }

  /// Checks that the part of an entry that answers a request is inside the body.
  private static func outside(_ part: ResponsePart, _ entry: CacheEntry) -> String? {
    guard case .bytes(let range) = part else { return nil }
    return range.isEmpty || range.lowerBound < 0 || range.upperBound > entry.body.count
      ? "the range \(range) is not in the body" : nil
  }

  /// Checks a stored response that answers because the request to the origin failed.
  ///
  /// - Parameter status: the status of the origin's response; `nil` when no response arrived.
  private static func covered(
    _ service: CachedAnswer, _ status: Int?, _ request: CacheRequest, _ now: Int64
  ) -> String? {
    let terms = service.entry.terms
    if status == 200 { return "a good answer is covered up" }
    if request.method != .get, request.method != .head { return "a failed \(request.method) is covered up" }
    if request.control.noCache || terms.control.noCache { return "a failure is covered up against no-cache" }
    if terms.timeLeft(at: now) <= 0, terms.control.mustRevalidate {
      return "a failure is covered up against must-revalidate"
    }
    if status != nil, terms.control.staleIfError == nil, request.control.staleIfError == nil {
      return "a server in trouble is covered up without stale-if-error"
    }
    return outside(service.part, service.entry)
  }

  /// Checks that an entry which stays stored after a 304 obeys the terms of the 304, including terms in
  /// fields that are not stored.
  private static func againstTerms(_ updated: CacheEntry, _ newFields: HeaderFields) -> String? {
    for fields in [updated.fields, newFields] {
      let control = CacheControl(fields)
      if control.noStore, !control.mustUnderstand { return "it is kept against no-store" }
      switch Vary(fields) {
      case .everything: return "it is kept against Vary: *"
      case .fields(let names):
        for name in names where !updated.selectors.contains(where: { $0.name == name }) {
          return "it is kept without its selector \(name)"
        }
      case .nothing: break
      }
    }
    return nil
  }

  /// Checks the changes to an entry after a 304 with the script's new fields, and after a response to HEAD
  /// with the new status and fields.
  private static func freshened(_ entry: CacheEntry, _ script: CacheScript) -> String? {
    func updated(_ entry: CacheEntry) -> CacheEntry {
      Freshening.updated(
        entry, with: script.newFields, for: script.second, requested: script.now, received: script.now)
    }
    let once = updated(entry)
    if once.key != entry.key || once.body != entry.body || once.status != entry.status {
      return "a 304 changes more than fields"
    }
    for name in ["Content-Length", "Content-Encoding"]
    where once.fields.values(of: name) != entry.fields.values(of: name) {
      return "a 304 changes \(name)"
    }
    if let fault = CachingRules.unfit(once.fields, false) { return fault }
    if updated(once).fields != once.fields { return "the same 304 twice makes it something else" }
    if Freshening.mayBeStored(once, after: script.newFields), let fault = againstTerms(once, script.newFields)
    {
      return fault
    }
    return switch Freshening.afterHead(entry, status: script.newStatus, script.newFields) {
    case .nothing: nil
    case .update, .remove: script.newStatus == 200 ? nil : "an answer \(script.newStatus) to HEAD counts"
    }
  }
}
