import NetOptCaching
import NetOptCore

/// A moment, in milliseconds since 1970, that is no whole second: Sat, 21 Nov 2026 00:00:00.250 GMT.
let start: Int64 = 1_795_219_200_250

/// A date in the form of HTTP, so many seconds from the start.
func date(_ seconds: Int64) -> String { CivilTime(seconds: start / 1000 + seconds).http }

/// A response that is stored: it came at the start.
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

/// A request for it.
func asked(_ fields: HeaderFields = [:], _ method: NetOptRequest.Method = .get) throws -> CacheRequest {
  CacheRequest(try NetOptRequest(method, "https://api.test/thing", headers: fields))
}

/// What is done about a request, so many seconds after the response came, in one word, and the section that says so.
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

/// Whether an answer is stored, and the section that says so.
func storing(
  _ fields: HeaderFields, status: Int = 200, to request: HeaderFields = [:],
  _ method: NetOptRequest.Method = .get
) throws -> (isStored: Bool, section: String) {
  let terms = ResponseTerms(status: status, fields: fields, requested: start, received: start)
  let storing = Storing(try asked(request, method), status: status, fields, terms)
  return (storing.isStored, storing.rule.section)
}
