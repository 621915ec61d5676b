package import NetOptCore

/// The rules by which the cache decides. Each rule has a text for people, and a source: the section of an
/// RFC, or a mode or setting of netopt. `NetOptResponse.cacheStatus` and `netopt cache explain` show both. In
/// the texts, "the response", "it" and "its" mean the stored response, or the response that the cache may
/// store.
extension CacheRule {
  /// Makes a rule that a section of RFC 9111 defines.
  private static func rfc9111(_ section: String, _ text: String) -> CacheRule {
    CacheRule(text, "RFC 9111, section \(section)")
  }
  /// Makes a rule that a section of RFC 9110 defines.
  private static func rfc9110(_ section: String, _ text: String) -> CacheRule {
    CacheRule(text, "RFC 9110, section \(section)")
  }

  // MARK: Serving

  package static let freshByMaxAge = rfc9111("5.2.2.1", "max-age sets how long the response is fresh")
  package static let freshByExpires = rfc9111("5.3", "Expires sets until when the response is fresh")
  package static let freshByHeuristic = rfc9111(
    "4.2.2", "the response states no freshness, so it is fresh for a tenth of its age since Last-Modified")
  /// `Expires` is not a date, or occurs more than once. The response counts as stale.
  package static let freshnessInvalid = rfc9111("4.2.1", "the stated freshness of the response is invalid")
  /// The response has no `max-age` and no `Expires`, and the heuristic does not apply. It counts as stale.
  package static let noFreshness = rfc9111("4.2", "the response states no freshness")
  /// The time that `max-age` or `Expires` states has passed, or `Expires` is invalid. The rule is also the
  /// reason for each refresh in the background.
  package static let stale = rfc9111("4.2", "the response is stale")
  /// The response has `immutable` and is fresh. So `max-age` and `min-fresh` of the request do not apply.
  package static let immutable = CacheRule("the response is immutable while fresh", "RFC 8246, section 2")
  package static let maxStale = rfc9111("5.2.1.2", "the request accepts a stale response with max-stale")
  package static let staleWhileRevalidate = CacheRule(
    "the response is stale; stale-while-revalidate allows its use during revalidation", "RFC 5861, section 3")
  package static let staleIfError = CacheRule(
    "the response is stale; stale-if-error allows its use because the origin failed", "RFC 5861, section 4")
  /// No response came from the origin. `CachePolicy.staleWhenUnreachable` allows the stored response.
  package static let disconnected = rfc9111("4.2.4", "the response is stale, and the origin is unreachable")

  // MARK: Asking the origin

  /// No response is stored for the key of the request. In `api` and `versioned` mode, the rule also covers
  /// stored responses that do not fit the request: they are for other values of the fields in `Vary`, or they
  /// are encoded and the request wants them decoded.
  package static let nothingStored = rfc9111("4", "nothing is stored for the URL")
  package static let otherSelectors = rfc9111(
    "4.1", "the stored responses are for other values of the fields that Vary names")
  package static let validated = rfc9111("4.3.4", "the origin confirmed the stored response")
  package static let mustRevalidate = rfc9111("5.2.2.2", "the response is stale and has must-revalidate")
  package static let noCache = rfc9111("5.2.2.4", "the response has no-cache")
  package static let requestNoCache = rfc9111("5.2.1.4", "the request has no-cache")
  package static let requestNoStore = rfc9111("5.2.1.5", "the request has no-store")
  package static let requestMaxAge = rfc9111("5.2.1.1", "the response is older than the request's max-age")
  package static let requestMinFresh = rfc9111(
    "5.2.1.3", "the response does not stay fresh for the request's min-fresh")
  package static let onlyIfCached = rfc9111(
    "5.2.1.7", "the request has only-if-cached, and no stored response answers it")
  package static let method = rfc9111("4", "a stored response cannot answer this method")
  /// The request has `If-Match` or `If-Unmodified-Since`.
  package static let condition = rfc9110("13.1", "the request has a condition that the origin evaluates")
  /// The request has several ranges, or a range that is malformed or begins after the end of the stored body.
  package static let otherRange = rfc9110("14.2", "a stored response cannot answer this range")
  package static let encodedOtherwise = rfc9110(
    "12.5.3", "the stored response is encoded, and the request wants it decoded")

  // MARK: Storing

  package static let storedExplicitly = rfc9111("3", "the response states how long it is fresh")
  package static let storedByStatus = rfc9111(
    "3", "the response has a storable status, and it can be validated or is fresh by heuristics")
  package static let storedAfterPost = rfc9110(
    "9.3.3", "the response to POST has the URL as its Content-Location and states how long it is fresh")
  package static let noStore = rfc9111("5.2.2.5", "the response has no-store")
  package static let notUnderstood = rfc9111(
    "5.2.2.3", "the response has must-understand, and netopt does not understand its status")
  package static let varyStar = rfc9111(
    "4.1",
    "Vary is *, has a name that is no token, or has more than \(Vary.mostNames) names: it fits no other request"
  )
  /// `Connection` or `no-cache="…"` of the response names a field that the cache needs, such as `Vary` or
  /// `Cache-Control`. The cache must not store this field. Without the field, the response would answer
  /// requests that it does not fit, so the cache does not store the response
  /// (`StoredFields.dropsCachingTerms`). The rule also covers a response whose `Connection` is too long to
  /// read.
  package static let termsNotStored = rfc9110(
    "7.6.1", "its Connection or no-cache names a field that the cache needs, such as Vary or Expires")
  package static let partialContent = rfc9111("3.3", "partial content is not stored")
  /// The cache does not store responses with this status. Or it stores them only with explicit freshness,
  /// which this response does not have.
  package static let statusNotStored = rfc9111(
    "3", "responses with this status are not stored, or only with an explicit freshness")
  package static let notWorthStoring = rfc9111("3", "the response is never fresh and cannot be validated")
  package static let methodNotStored = rfc9111("3", "responses to this method are not stored")
  package static let tooLarge = CacheRule("the body exceeds the limit for an entry", "netopt, maxEntryBytes")
  /// The rule of a 504 that the cache makes: the origin cannot be reached, and no rule allows the stored
  /// response.
  package static let unreachable = rfc9111(
    "5.2.2.2", "the origin cannot be reached, and the stored response must not be used without revalidation")

  // MARK: netopt's own

  /// Makes a rule that no RFC defines. `source` is the mode or the subject that the rule belongs to.
  private static func netopt(_ text: String, _ source: String) -> CacheRule {
    CacheRule(text, "netopt, \(source)")
  }

  /// The stored response was received at a later time than the present. The cache asks the origin.
  package static let clockSetBack = netopt("the response is from the future: the clock was set back", "clock")
  /// The stored response is within the time to live that the caller declared.
  package static let declaredFresh = netopt("its declared time to live has not passed", "api mode")
  /// The stored response has exceeded the declared time to live. The cache asks the origin.
  package static let declaredStale = netopt("its declared time to live has passed", "api mode")
  /// The stored response answers after the declared time to live (`CacheOptions.Declaration.Expired`).
  package static let declaredRefresh = netopt(
    "its declared time to live has passed; netopt refreshes it in the background", "api mode")
  /// The response is stored, because the declaration has a time to live for statuses from 200 to 299.
  package static let declared = netopt("the API declares how long the response is fresh", "api mode")
  /// The error response is stored, because the declaration has a `negativeTimeToLive`.
  package static let declaredNegative = netopt(
    "the API declares how long a negative response is fresh", "api mode")
  /// In `http` or `versioned` mode, a GET or HEAD request has a body. The request bypasses the cache.
  package static let requestBody = netopt(
    "the request has a body, which its URL does not identify", "http and versioned mode")
  /// In `api` mode, a GET or HEAD request has a body, and the declaration of the API has no `name`. The
  /// request bypasses the cache. The key of its response would include a digest of the body. A PUT or DELETE
  /// of the URL could not find this key, and so could not invalidate the response.
  package static let unnamedBody = netopt(
    "a GET or HEAD with a body is stored only for an API that is declared by name", "api mode")
  /// The declaration has no time to live for the status. Or it does not cover the request, because of its
  /// method or because its body is a stream.
  package static let notDeclared = netopt("the API declares no time to live for the response", "api mode")
  package static let versionFresh = netopt(
    "the response has the requested version or a later one", "versioned mode")
  /// The stored version is older than the requested version, by less than `CacheOptions.Versions.threshold`.
  package static let versionRefresh = netopt(
    "it is a little behind the requested version; netopt refreshes it in the background", "versioned mode")
  /// The stored version is older than the requested version, by `CacheOptions.Versions.threshold` or more.
  package static let versionBehind = netopt(
    "the response is too far behind the requested version", "versioned mode")
  /// The response is stored with the version that the request names.
  package static let versioned = netopt("the request names the resource's version", "versioned mode")
  /// In `versioned` mode, the URL has no version. The request bypasses the cache.
  package static let versionMissing = netopt("the request names no version", "versioned mode")
}
