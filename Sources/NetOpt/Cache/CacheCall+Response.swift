import NetOptCaching
import NetOptCore

/// Makes responses from cache entries.
extension CacheCall {
  /// Makes a response from a cache entry. Copies bytes of the body only when the request asks for a range.
  ///
  /// - Parameters:
  ///   - service: the entry, the part of it that answers the request, and the rule.
  ///   - isCollapsed: whether the call waited for the fetch of another call.
  ///   - status: the status of the origin's response that the entry replaces; `nil` when there was none.
  ///   - error: the error because of which the entry answers; `nil` when the origin was reached or not asked.
  func response(
    _ service: CachedAnswer, isCollapsed: Bool = false, status: Int? = nil, error: NetOptError? = nil
  ) -> NetOptResponse {
    let entry = service.entry
    let now = cache.now()
    var response = response(entry, service.part, age: entry.terms.age(at: now), route: error?.route)
    // For an entry with the version of its resource, the cache status shows no remaining time, unless the
    // entry has a declared expiry: the version that a request names decides whether the entry is fresh.
    let timeLeft =
      entry.declaredExpiry.map { $0 - now }
      ?? (entry.resourceVersion == nil ? entry.terms.timeLeft(at: now) : nil)
    response.cacheStatus = CacheStatus(
      service.outcome, by: service.rule,
      forward: status != nil || error != nil ? .stale : nil, forwardedStatus: status,
      timeToLive: timeLeft.map { $0 / 1000 }, isCollapsed: isCollapsed)
    return response
  }

  /// Makes a response from an entry that the origin has validated.
  ///
  /// - Parameters:
  ///   - entry: the updated entry.
  ///   - notModified: the 304 of the origin. Its connection, route, timings and cookies belong to this call.
  ///   - isStored: whether the updated entry is stored.
  func response(
    validated entry: CacheEntry, _ notModified: NetOptResponse, _ fetch: Fetch, isStored: Bool
  ) -> NetOptResponse {
    // Cookies are not stored; the cookies of the 304 belong to this call.
    let cookies = notModified.headers.filter { HeaderFields.equal($0.name, "Set-Cookie") }
    var response = response(entry, .whole, age: nil, route: notModified.route, with: HeaderFields(cookies))
    response.remote = notModified.remote
    response.reused = notModified.reused
    response.tls = notModified.tls
    response.attempts = notModified.attempts
    response.otherAttempts = notModified.otherAttempts
    response.body = ResponseBody(entry.body, timings: notModified.timings)
    response.cacheStatus = CacheStatus(
      .revalidated, by: .validated, forward: fetch.forward, forwardedStatus: 304,
      timeToLive: entry.terms.timeLeft(at: cache.now()) / 1000, storing: .validated, isStored: isStored)
    return response
  }

  /// Returns a response whose timings contain the wait for the fetch of another call, as `wait`.
  ///
  /// - Parameter started: when the call began.
  func waited(_ response: consuming NetOptResponse, since started: MonotonicInstant) -> NetOptResponse {
    var timings = Timings()
    timings.wait = cache.timeSource.now() - started
    response.body = ResponseBody(response.body.whole ?? [], timings: timings)
    return response
  }

  /// Makes a response from a 5xx response that another call has fetched for this call too.
  func response(serverError entry: CacheEntry, _ fetch: Fetch) -> NetOptResponse {
    var response = response(entry, .whole, age: nil, route: nil)
    response.cacheStatus = CacheStatus(
      .miss, by: fetch.rule, forward: fetch.forward, forwardedStatus: entry.status, isCollapsed: true)
    return response
  }

  /// Makes a response without a cache status.
  ///
  /// - Parameters:
  ///   - part: the part of the entry to return.
  ///   - age: the age of the entry in milliseconds, for the field `Age`; `nil` for a response without this
  ///     field.
  ///   - route: the route of the call's own request; `nil` when it sent none.
  ///   - further: fields to add to those of the entry.
  private func response(
    _ entry: CacheEntry, _ part: ResponsePart, age: Int64?, route: RouteReport?,
    with further: HeaderFields = [:]
  ) -> NetOptResponse {
    var fields = entry.fields
    if !further.isEmpty { fields += further }
    // The field has seconds, at most 2^31 (RFC 9111, sections 5.1 and 1.2.2).
    if let age { fields["Age"] = String(min(age / 1000, 1 << 31)) }
    var status = entry.status
    var body: [UInt8] = []
    switch part {
    case .whole: body = entry.body
    case .bytes(let range):
      status = 206
      body = Array(entry.body[range])
      fields["Content-Range"] = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(entry.body.count)"
      fields["Content-Length"] = String(range.count)
    case .head: break
    case .notModified:
      status = 304
      fields.removeAll { Self.contentFields.contains($0.name.loweredASCII) }
    }
    return NetOptResponse(
      url: request.url, head: ResponseHead(status: status, fields: fields), body: ResponseBody(body),
      route: route ?? noRoute, attempts: 0)
  }

  /// The fields that a 304 omits (RFC 9110, section 15.4.5).
  private static let contentFields: Set = [
    "content-type", "content-length", "content-encoding", "content-language", "content-range",
  ]

  /// Makes a 504 response (RFC 9111, sections 5.2.1.7 and 5.2.2.2).
  ///
  /// - Parameters:
  ///   - what: the reason in words, for the body.
  ///   - route: the route of the failed request; `nil` when no request was sent.
  func gatewayTimeout(_ rule: CacheRule, _ what: String, route: RouteReport? = nil) -> NetOptResponse {
    let body = Array("netopt: \(what) (\(rule.section): \(rule.text))\n".utf8)
    let fields: HeaderFields = [
      "Content-Type": "text/plain; charset=utf-8", "Content-Length": String(body.count),
      "Cache-Control": "no-store",
    ]
    var response = NetOptResponse(
      url: request.url, head: ResponseHead(status: 504, fields: fields),
      body: ResponseBody(request.method == .head ? [] : body),
      route: route ?? noRoute, attempts: 0)
    response.cacheStatus = CacheStatus(.miss, by: rule, forward: route == nil ? nil : .stale)
    return response
  }

  /// The route report of a call that sent no request: a plan of the policy `cache`, and no connection
  /// attempts.
  private var noRoute: RouteReport {
    RouteReport(
      plan: RoutePlan(origin: request.url.origin, policy: .cache, legs: [RoutePlan.Leg(.dns, source: .dns)]),
      legs: [])
  }
}
