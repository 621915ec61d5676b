import NetOpt
import NetOptCaching
import NetOptCore

extension CacheExplanation {
  /// The explanation as text, one fact on each line. It contains no bodies. Its only header value is the
  /// member of `Cache-Status` in which this cache reports what it did (RFC 9211).
  var lines: [String] {
    var lines = ["URL       \(url.shown)"]
    if entries.isEmpty { lines.append("STORED    nothing") }
    for entry in entries { lines += Self.lines(entry, at: moment) }
    if let eviction {
      lines.append("EVICTED   \(Self.date(eviction.moment)): \(Self.rule(of: eviction.reason))")
    }
    let (word, rule) = decision.explained
    lines.append("DECISION  \(word): \(rule)")
    guard let response else { return lines }
    let status = response.cacheStatus
    lines.append("OUTCOME   \(status.outcome.rawValue), status \(response.status): \(status.rule)")
    if let storing = status.storing {
      lines.append("ANSWER    \(status.isStored ? "stored" : "refused"): \(storing)")
    }
    if let text = status.text { lines.append("HEADER    Cache-Status: \(text)") }
    return lines
  }

  /// Returns the lines about a stored entry: what it is, and whether it is fresh.
  ///
  /// - Parameter moment: when the cache decided about the request, in milliseconds since 1970.
  private static func lines(_ entry: CacheEntry, at moment: Int64) -> [String] {
    let (isFresh, seconds, rule) = entry.freshness(at: moment)
    var stored =
      "STORED    status \(entry.status), \(Text.count(Int64(entry.body.count), "byte")), \(date(entry.received))"
    if !entry.selectors.isEmpty {
      stored += ", for the request's values of \(entry.selectors.map(\.name).joined(separator: ", "))"
    }
    let time = seconds.map { isFresh ? " for \($0) s" : " since \(-$0) s" } ?? ""
    return [stored, "STATE     \(isFresh ? "fresh" : "stale")\(rule == .noCache ? "" : time): \(rule)"]
  }

  /// The object that `--json` prints: docs/schemas/cache-explain.schema.json.
  var json: JSONValue {
    let (word, rule) = decision.explained
    let evicted: JSONValue =
      eviction.map { eviction in
        var json = Self.json(Self.rule(of: eviction.reason))
        json.append("at", .string(Self.date(eviction.moment)))
        return json
      } ?? .null
    return [
      "schema_version": 1, "url": .string(url.shown),
      "stored": .array(entries.map { Self.json($0, at: moment) }), "evicted": evicted,
      "decision": Self.json(rule, ("action", .string(word))),
      "outcome": response.map(Self.json) ?? .null,
    ]
  }

  /// Returns the JSON object for a stored entry.
  ///
  /// - Parameter moment: when the cache decided about the request, in milliseconds since 1970.
  private static func json(_ entry: CacheEntry, at moment: Int64) -> JSONValue {
    let (isFresh, seconds, rule) = entry.freshness(at: moment)
    return [
      "status": .integer(Int64(entry.status)), "body_bytes": .integer(Int64(entry.body.count)),
      "received": .string(date(entry.received)), "varies": .array(entry.selectors.map { .string($0.name) }),
      "state": isFresh ? "fresh" : "stale", "fresh_s": .optional(seconds), "rule": .string(rule.text),
      "section": .string(rule.section),
    ]
  }

  /// Returns the JSON object for the response that the command received.
  private static func json(_ response: NetOptResponse) -> JSONValue {
    let status = response.cacheStatus
    return json(
      status.rule, ("cache", .string(status.outcome.rawValue)), ("status", .integer(Int64(response.status))),
      (
        "answer",
        status.storing.map { json($0, ("action", status.isStored ? "stored" : "refused")) } ?? .null
      ), ("cache_status", .optional(status.text)))
  }

  /// Returns a JSON object with the given members, followed by the text and the section of a rule.
  private static func json(_ rule: CacheRule, _ members: (String, JSONValue)...) -> JSONValue {
    .object(
      members.map { .init($0.0, $0.1) } + [
        .init("rule", .string(rule.text)), .init("section", .string(rule.section)),
      ])
  }

  /// Returns the rule by which the disk cache evicted an entry.
  private static func rule(of reason: EvictionReason) -> CacheRule {
    switch reason {
    case .room: CacheRule("the cache was full, and this entry had the lowest value", "netopt, disk tier")
    case .age: CacheRule("the entry was older than the maximum age of entries", "netopt, disk tier")
    }
  }

  /// Formats a time in milliseconds since 1970 as RFC 3339, in whole seconds.
  private static func date(_ milliseconds: Int64) -> String {
    CivilTime(seconds: milliseconds / 1000).rfc3339
  }
}
