package import NetOptCore

/// The rules by which the cache decides. Each has a text for people and the section of the RFC, or the mode
/// of netopt, that it comes from. `NetOptResponse.cacheStatus` and `netopt cache explain` show both.
extension CacheRule {
  private static func rfc9111(_ section: String, _ text: String) -> CacheRule {
    CacheRule(text, "RFC 9111, section \(section)")
  }
  private static func rfc9110(_ section: String, _ text: String) -> CacheRule {
    CacheRule(text, "RFC 9110, section \(section)")
  }

  // MARK: Serving

  package static let freshByMaxAge = rfc9111("5.2.2.1", "max-age sets how long the response is fresh")
  package static let freshByExpires = rfc9111("5.3", "Expires sets until when the response is fresh")
  package static let freshByHeuristic = rfc9111(
    "4.2.2", "the response states no freshness, so it is fresh for a tenth of its age since Last-Modified")
  package static let freshnessInvalid = rfc9111("4.2.1", "the stated freshness of the response is invalid")
  package static let noFreshness = rfc9111("4.2", "the response states no freshness")
  package static let stale = rfc9111("4.2", "the response is stale")
  package static let immutable = CacheRule("the response is immutable while fresh", "RFC 8246, section 2")
  package static let maxStale = rfc9111("5.2.1.2", "the request accepts a stale response with max-stale")
  package static let staleWhileRevalidate = CacheRule(
    "the response is stale; stale-while-revalidate allows its use during revalidation", "RFC 5861, section 3")
  package static let staleIfError = CacheRule(
    "the response is stale; stale-if-error allows its use because the origin failed", "RFC 5861, section 4")
  package static let disconnected = rfc9111("4.2.4", "the response is stale, and the origin is unreachable")
  package static let range = rfc9110("14.2", "the range is a part of a complete response that is stored")
  package static let notModified = rfc9111(
    "4.3.2", "the request's condition does not hold for the stored response")
  package static let head = rfc9110("9.3.2", "a stored response to GET answers HEAD")

  // MARK: Asking the origin

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
  package static let condition = rfc9110("13.1", "the request has a condition that the origin evaluates")
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
  package static let termsNotStored = rfc9110(
    "7.6.1", "its Connection or no-cache names a field that says when it answers")
  package static let partialContent = rfc9111("3.3", "partial content is not stored")
  package static let statusNotStored = rfc9111(
    "3", "the status of the response is storable only with an explicit freshness")
  package static let notWorthStoring = rfc9111("3", "the response is never fresh and cannot be validated")
  package static let methodNotStored = rfc9111("3", "responses to this method are not stored")
  package static let tooLarge = CacheRule("the body exceeds the limit for an entry", "netopt, maxEntryBytes")
  package static let unreachable = rfc9111(
    "5.2.2.2", "the origin cannot be reached, and the stored response must not be used without revalidation")

  // MARK: netopt's own

  private static func netopt(_ text: String, _ source: String) -> CacheRule {
    CacheRule(text, "netopt, \(source)")
  }

  package static let off = netopt("the cache is off for this request", "mode off")
  package static let clockSetBack = netopt("the response is from the future: the clock was set back", "clock")
  package static let declaredFresh = netopt("its declared time to live has not passed", "api mode")
  package static let declaredStale = netopt("its declared time to live has passed", "api mode")
  package static let declaredRefresh = netopt(
    "its declared time to live has passed; netopt refreshes it in the background", "api mode")
  package static let declared = netopt("the API declares how long the response is fresh", "api mode")
  package static let declaredNegative = netopt(
    "the API declares how long a negative response is fresh", "api mode")
  package static let requestBody = netopt(
    "the request has a body, which its URL does not identify", "http mode")
  package static let unnamedBody = netopt(
    "a GET or HEAD with a body is stored only for an API that is declared by name", "api mode")
  package static let notDeclared = netopt("the API declares no time to live for the response", "api mode")
  package static let versionFresh = netopt(
    "the response has the requested version or a later one", "versioned mode")
  package static let versionRefresh = netopt(
    "it is a little behind the requested version; netopt refreshes it in the background", "versioned mode")
  package static let versionBehind = netopt(
    "the response is too far behind the requested version", "versioned mode")
  package static let versioned = netopt("the request names the resource's version", "versioned mode")
  package static let versionMissing = netopt("the request names no version", "versioned mode")
}
