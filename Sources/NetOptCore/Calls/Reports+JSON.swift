// Reports of a call as JSON, with the same keys in all output.

extension AttemptReport {
  /// The JSON object for an attempt, without its route.
  package var json: JSONValue {
    var json: JSONValue = [
      "number": .integer(Int64(number)), "reason": .string(reason.rawValue),
      "started_us": .microseconds(started), "ended_us": .microseconds(ended),
      "remote_ip": .optional(remote?.address.description), "remote_port": .optional(remote?.port),
      "sends": .integer(Int64(sends)),
    ]
    switch outcome {
    case .answered(let status): json.append("status", .integer(Int64(status)))
    case .failed(let error): json.append("error", error.json)
    case .overtaken: json.append("overtaken", true)
    }
    return json
  }
}

extension NetOptError {
  /// The JSON object for an error.
  package var json: JSONValue {
    var json: JSONValue = [
      "code": .string(code.description), "phase": .string(phase.rawValue), "message": .string(message),
    ]
    if let endpoint { json.append("endpoint", .string(endpoint.description)) }
    return json
  }
}

extension Timings {
  /// The durations of the phases in whole microseconds. `total` is the sum of the written values, so that the
  /// numbers add up in spite of rounding.
  package var json: JSONValue {
    let phases = [
      ("queue", queue), ("dns", dns), ("connect", connect), ("tls", tls), ("send", send), ("wait", wait),
      ("transfer", transfer),
    ]
    let members = phases.map { JSONValue.Member($0, .integer($1.microseconds)) }
    let total = phases.reduce(0) { $0 + $1.1.microseconds }
    return .object(members + [.init("total", .integer(total))])
  }
}
