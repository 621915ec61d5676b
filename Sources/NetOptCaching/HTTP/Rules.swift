package import NetOptCore

/// The rules of the cache policies, each with its source.
extension CacheRule {
  private static func rfc9111(_ section: String, _ text: String) -> CacheRule {
    CacheRule(text, "RFC 9111, section \(section)")
  }
  private static func rfc9110(_ section: String, _ text: String) -> CacheRule {
    CacheRule(text, "RFC 9110, section \(section)")
  }

  // MARK: Serving

  package static let freshByMaxAge = rfc9111("5.2.2.1", "max-age says for how long it is fresh")
  package static let freshByExpires = rfc9111("5.3", "Expires says until when it is fresh")
  package static let freshByHeuristic = rfc9111(
    "4.2.2", "a tenth of its age when it came counts as its freshness, since it says nothing of it")
  package static let freshnessInvalid = rfc9111("4.2.1", "what it says of its freshness cannot be read")
  package static let noFreshness = rfc9111("4.2", "it says nothing of its freshness")
  package static let stale = rfc9111("4.2", "it is stale")
  package static let immutable = CacheRule("it is immutable while it is fresh", "RFC 8246, section 2")
  package static let maxStale = rfc9111("5.2.1.2", "the request accepts a stale response with max-stale")
  package static let staleWhileRevalidate = CacheRule(
    "it is stale, and stale-while-revalidate lets it be used while it is refreshed", "RFC 5861, section 3")
  package static let staleIfError = CacheRule(
    "it is stale, and stale-if-error lets it be used because the origin failed", "RFC 5861, section 4")
  package static let disconnected = rfc9111("4.2.4", "it is stale, and the origin cannot be reached")
  package static let range = rfc9110("14.2", "the range is a part of a complete response that is stored")
  package static let notModified = rfc9111(
    "4.3.2", "the request's condition does not hold for the stored response")
  package static let head = rfc9110("9.3.2", "a stored response to GET answers HEAD")

  // MARK: Asking the origin

  package static let nothingStored = rfc9111("4", "nothing is stored for the URL")
  package static let otherSelectors = rfc9111(
    "4.1", "what is stored is for other values of the fields that Vary names")
  package static let validated = rfc9111("4.3.4", "the origin said that the stored response still holds")
  package static let mustRevalidate = rfc9111("5.2.2.2", "it is stale and has must-revalidate")
  package static let noCache = rfc9111("5.2.2.4", "it has no-cache")
  package static let requestNoCache = rfc9111("5.2.1.4", "the request has no-cache")
  package static let requestNoStore = rfc9111("5.2.1.5", "the request has no-store")
  package static let requestMaxAge = rfc9111("5.2.1.1", "it is older than the request's max-age")
  package static let requestMinFresh = rfc9111(
    "5.2.1.3", "it does not stay fresh for the request's min-fresh")
  package static let onlyIfCached = rfc9111(
    "5.2.1.7", "the request has only-if-cached, and nothing that is stored answers it")
  package static let method = rfc9111("4", "the method is not one that a stored response answers")
  package static let condition = rfc9110("13.1", "the request has a condition that the origin evaluates")
  package static let otherRange = rfc9110("14.2", "the range is not one that a stored response answers")
  package static let encodedOtherwise = rfc9110(
    "12.5.3", "what is stored is encoded, and the request wants it decoded")

  // MARK: Storing

  package static let storedExplicitly = rfc9111("3", "it says how long it is fresh")
  package static let storedByStatus = rfc9111(
    "3", "its status lets it be stored, and it can be validated or is fresh by heuristics")
  package static let storedAfterPost = rfc9110(
    "9.3.3", "the answer to POST has Content-Location of the URL and says how long it is fresh")
  package static let noStore = rfc9111("5.2.2.5", "it has no-store")
  package static let notUnderstood = rfc9111(
    "5.2.2.3", "it has must-understand, and the status is not understood")
  package static let varyStar = rfc9111(
    "4.1",
    "Vary is *, has a name that is no token, or has more than \(Vary.mostNames) names: it fits no other request"
  )
  package static let termsNotStored = rfc9110(
    "7.6.1", "its Connection or no-cache names a field that says when it answers")
  package static let partialContent = rfc9111("3.3", "partial content is not stored")
  package static let statusNotStored = rfc9111(
    "3", "its status is not one to be stored without an explicit freshness")
  package static let notWorthStoring = rfc9111("3", "it is never fresh and cannot be validated")
  package static let methodNotStored = rfc9111("3", "answers to this method are not stored")
  package static let tooLarge = CacheRule("its body is larger than an entry may be", "netopt, maxEntryBytes")
  package static let unreachable = rfc9111(
    "5.2.2.2", "the origin cannot be reached, and the stored response may not be used without it")

  // MARK: netopt's own

  private static func netopt(_ text: String, _ source: String) -> CacheRule {
    CacheRule(text, "netopt, \(source)")
  }

  package static let off = netopt("the cache is off for this request", "mode off")
  package static let clockSetBack = netopt("it came later than now: the clock was set back", "clock")
  package static let declaredFresh = netopt("its declared time to live is not over", "api mode")
  package static let declaredStale = netopt("its declared time to live is over", "api mode")
  package static let declaredRefresh = netopt(
    "its declared time to live is over, and it is refreshed beside the call", "api mode")
  package static let declared = netopt("the API declares how long it is fresh", "api mode")
  package static let declaredNegative = netopt(
    "the API declares how long a negative answer is fresh", "api mode")
  package static let requestBody = netopt(
    "the request has a body, of which its URL says nothing", "http mode")
  package static let unnamedBody = netopt(
    "a GET or HEAD with a body is stored only for an API that is declared by name", "api mode")
  package static let notDeclared = netopt("the API declares no time to live for it", "api mode")
  package static let versionFresh = netopt(
    "it is of the version that is asked for, or of a later one", "versioned mode")
  package static let versionRefresh = netopt(
    "it is a little behind the version that is asked for, and is refreshed beside the call", "versioned mode")
  package static let versionBehind = netopt(
    "it is too far behind the version that is asked for", "versioned mode")
  package static let versioned = netopt("the request names the resource's version", "versioned mode")
  package static let versionMissing = netopt("the request names no version", "versioned mode")
}
