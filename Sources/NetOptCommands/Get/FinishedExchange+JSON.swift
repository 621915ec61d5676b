import NetOptCore

extension FinishedExchange {
  /// The object that `get --json` prints: docs/schemas/get.schema.json.
  var json: JSONValue {
    var json: JSONValue = [
      "schema_version": 1,
      "url": .string(url.shown),
      "status": .integer(Int64(head.status)),
      "http_version": .string(head.version.rawValue),
      "remote_ip": .optional(remote?.address.description),
      "remote_port": .optional(remote?.port),
      "route": route.json,
      "tls": tls.map { ["verified": .bool($0.verified), "version": .optional($0.version)] } ?? nil,
      "timings_us": timings.json,
      "server_timing": .array(serverTiming.map(\.json)),
      "reused": .bool(reused),
      "cache": .string(cacheStatus.outcome.rawValue),
      "signed": .optional(signedBy),
      "attempts": .integer(Int64(attempts)),
      "headers": .array(head.fields.map { [.string($0.name), .string($0.value)] }),
      "body_bytes": .integer(bodyBytes),
    ]
    json.append(otherAttempts)
    return json
  }

  /// Returns the object that `get --json` prints when there is no response.
  ///
  /// - Parameter url: the URL from the command line, without secrets.
  static func failure(url: String, _ error: NetOptError) -> JSONValue {
    var json: JSONValue = [
      "schema_version": 1,
      "url": .string(url),
      "error": error.json,
      "route": error.route?.json ?? nil,
    ]
    json.append(error.otherAttempts)
    return json
  }
}

extension JSONValue {
  /// Appends the member `other_attempts` with the attempts that did not give the response, if there are any.
  fileprivate mutating func append(_ otherAttempts: [AttemptReport]) {
    if !otherAttempts.isEmpty {
      append(
        "other_attempts",
        .array(
          otherAttempts.map { attempt in
            var json = attempt.json
            json.append("route", attempt.route?.json ?? nil)
            return json
          }))
    }
  }
}

extension ServerTiming {
  fileprivate var json: JSONValue {
    ["name": .string(name), "dur_us": .microseconds(duration), "desc": .optional(text)]
  }
}

extension RouteReport {
  /// The object for the route in the output of `get --json`.
  var json: JSONValue {
    var json: JSONValue = [
      "source": .string(source.rawValue),
      "policy": .string(plan.policy.rawValue),
      "direct": [
        "used": .bool(winner?.source == .list), "off": .optional(plan.directOff?.rawValue),
      ],
      "candidates": .array(plan.candidates.map(\.json)),
      "legs": .array(legs.map(\.json)),
      "fallback": .optional(fallback?.rawValue),
    ]
    if isShared { json.append("shared", true) }
    if plan.suspectsNetwork { json.append("network_suspected", true) }
    return json
  }
}

extension RouteReport.Candidate {
  fileprivate var json: JSONValue {
    var json: JSONValue = [
      "ip": .string(address.description), "score_us": .microseconds(score),
      "source": .string(source.rawValue),
    ]
    if let excluded { json.append("excluded", .string(excluded.description)) }
    return json
  }
}

extension RouteReport.Leg {
  fileprivate var json: JSONValue {
    var json: JSONValue = [
      "ip": .optional(address?.description), "source": .string(source.rawValue),
      "started_us": .microseconds(started), "connected_us": .microseconds(connected),
      "tls_us": .microseconds(secured), "outcome": .string(outcome.rawValue),
    ]
    if let failure { json.append("error", .string(failure.message)) }
    return json
  }
}
