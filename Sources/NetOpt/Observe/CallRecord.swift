public import FoundationEssentials
public import NetOptCore

/// A call that has ended: its request, its response, and its durations (`CallRecordObserver`).
public struct CallRecord: Sendable {
  let details: CallDetails

  /// The number of the call in its client.
  public var id: UInt64 { details.id }
  /// The request of the program, before redirects and interceptors changed it.
  public var request: NetOptRequest { details.request }
  /// The response, without its body: reading it gives nothing. `nil` if the call failed before a response, or
  /// with one that it did not return.
  public var response: NetOptResponse? {
    var response = details.response
    response?.body = ResponseBody([], timings: timings)
    return response
  }
  /// The durations of the phases; all zero without a response, and if its body failed.
  public let timings: Timings
  /// `duration` in nanoseconds.
  let nanoseconds: Int64
  /// The duration of the call, until the end of its body or its failure.
  public var duration: Duration { .nanoseconds(nanoseconds) }
  /// When the call ended.
  public let ended: Date
  /// Why the call or its body failed; `nil` if the body ended.
  public let error: NetOptError?

  /// The identifier of the trace to which the call belongs, as 32 hexadecimal digits. The client began or
  /// continued the trace (`ClientConfiguration.Telemetry`), or the request has a `traceparent`. `nil` without a
  /// trace.
  public var traceID: String? { (trace ?? TraceContext(request.headers))?.traceID.description }

  /// The span of the call; `nil` when the client exports no traces.
  let trace: TraceContext?
}

extension CallRecord {
  /// The call as one line of JSON for a log, without a line end: docs/schemas/call.schema.json. The URL has no
  /// secret parameters, and no header field is in it.
  public var json: String { JSONValue(self).description }
}

extension JSONValue {
  /// The line of a log for a call.
  fileprivate init(_ call: CallRecord) {
    let (request, response) = (call.request, call.response)
    self = [
      "time": .string(call.ended.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))),
      "call": .integer(Int64(clamping: call.id)), "method": .string(request.method.rawValue),
      "url": .string(request.url.shown),
    ]
    if let tag = request.options.tag { append("tag", .string(tag)) }
    if let trace = call.traceID { append("trace_id", .string(trace)) }
    append("duration_us", .microseconds(call.duration))
    if let response {
      append("status", .integer(Int64(response.status)))
      append("http_version", .string(response.version.rawValue))
      if response.url != request.url { append("final_url", .string(response.url.shown)) }
      append("remote_ip", .optional(response.remote?.address.description))
      append("remote_port", .optional(response.remote?.port))
      append("source", .string(response.route.source.rawValue))
      append("reused", .bool(response.reused))
      append("cache", .string(response.cacheStatus.outcome.rawValue))
      append("attempts", .integer(Int64(response.attempts)))
      if call.error == nil { append("timings_us", call.timings.json) }
    }
    let others = response?.otherAttempts ?? call.error?.otherAttempts ?? []
    if !others.isEmpty { append("other_attempts", .array(others.map(\.json))) }
    if let error = call.error { append("error", error.json) }
  }
}
