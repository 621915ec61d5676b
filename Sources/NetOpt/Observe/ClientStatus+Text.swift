import FoundationEssentials
import NetOptCore

extension ClientStatus: CustomStringConvertible {
  /// The status as a table for people: a line for the list, one for each host, and one for each endpoint.
  /// Times are in UTC.
  public var description: String {
    var lines = [
      "list: \(list.source.description.printable(200))" + (list.serial.map { ", serial \($0)" } ?? "")
    ]
    if let listWarning { lines.append("  \(listWarning.message.printable(400))") }
    lines.append("calls under way: \(callsUnderWay)")
    for host in hosts {
      let note = host.usesList ? "" : "  (requests use DNS or the proxy, not these endpoints)"
      lines.append("\(host.name):\(host.port)\(note)")
      lines += host.endpoints.map { "  " + Self.line($0) }
    }
    return lines.joined(separator: "\n") + "\n"
  }

  private static func line(_ endpoint: Endpoint) -> String {
    var parts = ["\(endpoint.rank.map(String.init) ?? "-")", endpoint.address.description]
    parts.append(endpoint.rtt.map { "rtt \(milliseconds($0))" } ?? "not measured")
    if let score = endpoint.score { parts.append("score \(milliseconds(score))") }
    parts += [endpoint.region, endpoint.isp].compactMap { $0?.printable(60) }
    parts.append(endpoint.state.rawValue)
    if let since = endpoint.avoidedSince { parts.append("avoided since \(since.formatted(.iso8601))") }
    if let excluded = endpoint.excluded {
      parts.append("(\(excluded.description.printable(400)))")
    } else if let failure = endpoint.lastFailure, let failed = endpoint.lastFailed {
      parts.append("(last failure \(failed.formatted(.iso8601)): \(failure.message.printable(400)))")
    }
    return parts.joined(separator: "  ")
  }

  private static func milliseconds(_ duration: Duration) -> String {
    let tenths = Int64((duration.milliseconds * 10).rounded())
    return "\(tenths / 10).\(tenths % 10) ms"
  }

  /// The status as JSON: docs/schemas/status.schema.json. Times are in UTC, durations in microseconds.
  public var json: String {
    let value: JSONValue = [
      "schema_version": 1, "date": .string(date.formatted(.iso8601)),
      "calls_under_way": .integer(Int64(callsUnderWay)),
      "list": [
        "source": .string(list.source.description), "serial": .optional(list.serial),
        "issued": .optional(list.issued?.formatted(.iso8601)),
        "expires": .optional(list.expires?.formatted(.iso8601)),
        "last_check": .optional(list.lastCheck?.formatted(.iso8601)),
        "signed_by": .optional(list.signedBy), "note": .optional(list.note),
        "error": .optional(listWarning?.message),
      ],
      "hosts": .array(hosts.map(Self.json)),
    ]
    return value.description
  }

  private static func json(_ host: Host) -> JSONValue {
    [
      "host": .string(host.name), "port": .integer(Int64(host.port)), "uses_list": .bool(host.usesList),
      "endpoints": .array(host.endpoints.map(json)),
    ]
  }

  private static func json(_ endpoint: Endpoint) -> JSONValue {
    [
      "ip": .string(endpoint.address.description), "region": .optional(endpoint.region),
      "isp": .optional(endpoint.isp), "rank": .optional(endpoint.rank),
      "score_us": .microseconds(endpoint.score),
      "rtt_us": .microseconds(endpoint.rtt),
      "state": .string(endpoint.state.rawValue),
      "excluded": .optional(endpoint.excluded?.description),
      "avoided_since": .optional(endpoint.avoidedSince?.formatted(.iso8601)),
      "last_failure": .optional(endpoint.lastFailure?.message),
      "last_failed": .optional(endpoint.lastFailed?.formatted(.iso8601)),
    ]
  }
}
