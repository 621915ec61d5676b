package import NetOptCore

/// The decision whether to store a response (RFC 9111, section 3), with the rule that decided.
package struct Storing: Sendable {
  /// Whether the response is stored.
  package let isStored: Bool
  /// The rule that decided.
  package let rule: CacheRule

  private init(_ isStored: Bool, _ rule: CacheRule) {
    self.isStored = isStored
    self.rule = rule
  }

  /// The response is not stored.
  package static func refused(_ rule: CacheRule) -> Storing { Storing(false, rule) }
  /// The response is stored.
  package static func stored(_ rule: CacheRule) -> Storing { Storing(true, rule) }

  /// The final statuses that this cache understands, for `must-understand` (RFC 9110, section 15; RFC 6585;
  /// RFC 7725).
  private static let understood: Set = Set(200...205).union([
    300, 301, 302, 303, 305, 307, 308, 400, 401, 402, 403, 404, 405, 406, 407, 408, 409, 410, 411, 412, 413,
    414, 415,
    417, 421, 422, 426, 428, 429, 431, 451, 500, 501, 502, 503, 504, 505, 511,
  ])

  /// Decides whether to store a response.
  ///
  /// - Parameters:
  ///   - fields: the header fields of the response.
  ///   - terms: the caching terms of the response.
  package init(_ request: CacheRequest, status: Int, _ fields: HeaderFields, _ terms: ResponseTerms) {
    self = Self.decide(request, status, fields, terms)
  }

  private static func decide(
    _ request: CacheRequest, _ status: Int, _ fields: HeaderFields, _ terms: ResponseTerms
  ) -> Storing {
    let control = terms.control
    if request.control.noStore { return .refused(.requestNoStore) }
    if control.mustUnderstand, !understood.contains(status) { return .refused(.notUnderstood) }
    if control.forbidsStoring { return .refused(.noStore) }
    if status == 206 { return .refused(.partialContent) }
    // A server sends 226 only to a request for a delta (RFC 3229), 304 only to a request with a condition,
    // and 416 only to a request with a range. These responses do not fit other requests. RFC 6585 forbids
    // storing 428, 429, 431 and 511.
    if status < 200 || [226, 304, 416, 428, 429, 431, 511].contains(status) {
      return .refused(.statusNotStored)
    }
    if Vary(fields) == .everything { return .refused(.varyStar) }
    if StoredFields.dropsCachingTerms(of: fields, control) { return .refused(.termsNotStored) }
    if request.method == .post { return afterPost(request, status, fields, terms) }
    guard request.method == .get else { return .refused(.methodNotStored) }
    return decideByFreshness(status, terms)
  }

  /// Decides by the status, the freshness and the validators of a response to GET. The caller has already
  /// checked the rules that forbid storing whatever these are.
  private static func decideByFreshness(_ status: Int, _ terms: ResponseTerms) -> Storing {
    let freshness = terms.freshness
    if freshness.isExplicit {
      let isUseful = freshness.lifetime > 0 || !terms.validators.isEmpty || terms.control.staleIfError != nil
      return isUseful ? .stored(.storedExplicitly) : .refused(.notWorthStoring)
    }
    guard Freshness.heuristicStatuses.contains(status) || terms.control.isPublicOrPrivate else {
      return .refused(.statusNotStored)
    }
    // A response that is never fresh and has no validator can answer no later request.
    return freshness.lifetime > 0 || !terms.validators.isEmpty
      ? .stored(.storedByStatus) : .refused(.notWorthStoring)
  }

  /// Decides for a response to POST. It is stored, and answers GET, if it has explicit freshness and a
  /// `Content-Location` that equals the URL (RFC 9110, section 9.3.3).
  private static func afterPost(
    _ request: CacheRequest, _ status: Int, _ fields: HeaderFields, _ terms: ResponseTerms
  ) -> Storing {
    guard status == 200, terms.freshness.isExplicit, terms.freshness.lifetime > 0,
      let location = fields["Content-Location"], let url = try? request.url.resolving(location),
      url == request.url
    else { return .refused(.methodNotStored) }
    return .stored(.storedAfterPost)
  }
}

/// Finds the URLs whose entries a successful unsafe request makes invalid (RFC 9111, section 4.4).
package enum Invalidation {
  /// The URL of the request, and the URLs in `Location` and `Content-Location` if they have the same origin.
  ///
  /// - Returns: an empty array for a safe method, and for a status outside 200 to 399.
  package static func urls(_ request: CacheRequest, status: Int, _ fields: HeaderFields) -> [HTTPURL] {
    guard !request.method.isSafe, (200...399).contains(status) else { return [] }
    // Skips longer references, which redirects do not follow either.
    let named = ["Location", "Content-Location"].compactMap { fields[$0] }.filter {
      $0.utf8.count <= HTTPURL.longestReference
    }
    let urls = named.compactMap { try? request.url.resolving($0) }
    return [request.url] + urls.filter { $0.origin == request.url.origin && $0 != request.url }
  }
}
