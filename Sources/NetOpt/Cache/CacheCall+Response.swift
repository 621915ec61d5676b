import NetOptCaching
import NetOptCore

/// Makes responses from cache entries.
extension CacheCall {
  /// Makes a response from a cache entry. Copies the body only when the request asks for a part of it.
  ///
  /// - Parameters:
  ///   - status: the status that the origin answered with; `nil` when it did not answer.
  ///   - error: the error if the origin could not be reached.
  func response(
    _ service: CacheService, isCollapsed: Bool = false, status: Int? = nil, error: NetOptError? = nil
  ) -> NetOptResponse {
    let entry = service.entry
    let now = cache.now()
    var response = response(entry, service.part, age: entry.terms.age(at: now), route: error?.route)
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

  /// Makes a response from the 5xx response that the origin gave to another call.
  func response(serverError entry: CacheEntry, _ fetch: Fetch) -> NetOptResponse {
    var response = response(entry, .whole, age: nil, route: nil)
    response.cacheStatus = CacheStatus(
      .miss, by: fetch.rule, forward: fetch.forward, forwardedStatus: entry.status, isCollapsed: true)
    return response
  }

  private func response(
    _ entry: CacheEntry, _ part: RangePart, age: Int64?, route: RouteReport?, with further: HeaderFields = [:]
  ) -> NetOptResponse {
    var fields = entry.fields
    if !further.isEmpty { fields += further }
    // RFC 9111, sections 5.1 and 1.2.2.
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

  /// The route of a request that was not sent.
  private var noRoute: RouteReport {
    RouteReport(
      plan: RoutePlan(origin: request.url.origin, policy: .cache, legs: [RoutePlan.Leg(.dns, source: .dns)]),
      legs: [])
  }
}
