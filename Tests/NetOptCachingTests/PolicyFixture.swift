import NetOptCaching
import NetOptCore

/// A time in milliseconds since 1970, with a fraction of a second: Sat, 21 Nov 2026 00:00:00.250 GMT.
let start: Int64 = 1_795_219_200_250

/// The HTTP date of `start` plus this number of seconds.
func date(_ seconds: Int64) -> String { CivilTime(seconds: start / 1000 + seconds).http }

/// A stored response that was received at `start`.
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

/// A request for the URL of the stored response.
func asked(_ fields: HeaderFields = [:], _ method: NetOptRequest.Method = .get) throws -> CacheRequest {
  CacheRequest(try NetOptRequest(method, "https://api.test/thing", headers: fields))
}

/// The decision of the cache as a word, and the section of its rule.
///
/// - Parameter seconds: the time from the response to the request; 1 s by default.
func decision(
  _ fields: HeaderFields = [:], _ method: NetOptRequest.Method = .get, on entries: CacheEntry...,
  after seconds: Double = 1
) throws -> (word: String, section: String) {
  words(CachePolicy().decide(try asked(fields, method), entries, at: start + Int64(seconds * 1000)))
}

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

/// Whether the cache stores a response, and the section of the rule.
func storing(
  _ fields: HeaderFields, status: Int = 200, to request: HeaderFields = [:],
  _ method: NetOptRequest.Method = .get
) throws -> (isStored: Bool, section: String) {
  let terms = ResponseTerms(status: status, fields: fields, requested: start, received: start)
  let storing = Storing(try asked(request, method), status: status, fields, terms)
  return (storing.isStored, storing.rule.section)
}
