import NetOptCaching
import NetOptCore

/// When the stored responses of the policy tests were received, in milliseconds since 1970: Sat, 21 Nov 2026
/// 00:00:00.250 GMT. The time has a fraction of a second, which the dates in header fields do not have.
let start: Int64 = 1_795_219_200_250

/// The HTTP date that is this number of seconds after `start`, without the fraction of a second.
func date(_ seconds: Int64) -> String { CivilTime(seconds: start / 1000 + seconds).http }

/// A stored response that was received at `start`.
///
/// - Parameters:
///   - took: the time from the sending of the request to the response head, in milliseconds.
///   - declaredExpiry: `CacheEntry.declaredExpiry`, in milliseconds since 1970.
///   - version: `CacheEntry.resourceVersion`.
func stored(
  _ fields: HeaderFields, status: Int = 200, body: String = "0123456789",
  selectors: [CacheEntry.Selector] = [],
  took: Int64 = 0, declaredExpiry: Int64? = nil, version: Int64? = nil
) throws -> CacheEntry {
  CacheEntry(
    key: try CacheKey(api: "GET https://api.test/thing", parameters: ""), selectors: selectors,
    status: status,
    fields: fields, body: Array(body.utf8), requested: start - took, received: start,
    declaredExpiry: declaredExpiry, resourceVersion: version, fetchMicroseconds: 1000)
}

/// A request for the URL of the stored response, as a policy reads it.
func asked(_ fields: HeaderFields = [:], _ method: NetOptRequest.Method = .get) throws -> CacheRequest {
  CacheRequest(try NetOptRequest(method, "https://api.test/thing", headers: fields))
}

/// The decision of `CachePolicy` about a request, as `words` describes it.
///
/// - Parameters:
///   - fields: the header fields of the request.
///   - entries: the stored responses.
///   - seconds: the time from `start` to the decision, in seconds.
func decision(
  _ fields: HeaderFields = [:], _ method: NetOptRequest.Method = .get, on entries: CacheEntry...,
  after seconds: Double = 1
) throws -> (word: String, section: String) {
  words(CachePolicy().decide(try asked(fields, method), entries, at: start + Int64(seconds * 1000)))
}

/// Describes a decision: a word for the decision, and the section of the rule that decided, such as "RFC
/// 9111, section 4". The words:
///
/// - "hit" or "stale": a stored response answers. With "+refresh" the cache also refreshes it in the
///   background.
/// - "validate": the request goes to the origin with conditions that the cache adds.
/// - "fetch": the request goes to the origin without such conditions, although a stored response is
///   selected. The stored response has no validator, or the cache must not change the request.
/// - "fetch:" and a `CacheStatus.Forward`: the request goes to the origin for this reason, because no
///   stored response can answer it.
/// - "bypass": the request goes to the origin, and the response is not stored.
/// - "refuse": the cache answers with 504.
func words(_ decision: CacheDecision) -> (word: String, section: String) {
  switch decision {
  case .serve(let service):
    (
      service.refreshes ? "\(service.outcome.rawValue)+refresh" : service.outcome.rawValue,
      service.rule.section
    )
  case .validate(_, let fields, _, let rule): (fields.isEmpty ? "fetch" : "validate", rule.section)
  case .fetch(let forward, let rule): ("fetch:\(forward.rawValue)", rule.section)
  case .bypass(let rule): ("bypass", rule.section)
  case .refuse(let rule): ("refuse", rule.section)
  }
}

/// Whether RFC 9111 lets the cache store a response, and the section of the rule that decides (`Storing`).
///
/// - Parameters:
///   - fields: the header fields of the response.
///   - request: the header fields of the request.
func storing(
  _ fields: HeaderFields, status: Int = 200, to request: HeaderFields = [:],
  _ method: NetOptRequest.Method = .get
) throws -> (isStored: Bool, section: String) {
  let terms = ResponseTerms(status: status, fields: fields, requested: start, received: start)
  let storing = Storing(try asked(request, method), status: status, fields, terms)
  return (storing.isStored, storing.rule.section)
}
