import NetOptCore
import NetOptRouting

/// A span that has ended: a call, or an attempt of one. An object, so that it is written down without copies of
/// its parts.
final class Span: Sendable {
  /// What a span stands for.
  enum Kind: Sendable {
    /// A call, with all its attempts and its waits.
    case call
    /// An attempt, from its start to the head of its response.
    ///
    /// - Parameters:
    ///   - earlier: how many attempts the call made before it, redirects included.
    ///   - reason: why the call made the attempt.
    case attempt(earlier: Int, AttemptReport.Reason)
  }

  /// The span itself.
  let context: TraceContext
  let parentID: UInt64?
  /// What to add to the monotonic clock, to get nanoseconds since 1970.
  let epoch: Int64
  let kind: Kind
  let started: MonotonicInstant
  let ended: MonotonicInstant
  let request: SpanRequest
  let result: SpanResult

  init(
    _ context: TraceContext, parentID: UInt64?, epoch: Int64, _ kind: Kind, from started: MonotonicInstant,
    to ended: MonotonicInstant, _ request: SpanRequest, _ result: SpanResult
  ) {
    self.context = context
    self.parentID = parentID
    self.epoch = epoch
    self.kind = kind
    self.started = started
    self.ended = ended
    self.request = request
    self.result = result
  }
}

/// What a request was, as far as its span tells.
struct SpanRequest: Sendable {
  let method: NetOptRequest.Method
  let url: HTTPURL
  let tag: String?

  init(_ request: NetOptRequest) {
    method = request.method
    url = request.url
    tag = request.options.tag
  }
}

/// How a call or an attempt ended, as far as its span tells.
struct SpanResult: Sendable {
  /// The status of the response; `nil` without one.
  var status: Int?
  var version: HTTPVersion?
  var remote: IPEndpoint?
  var reused = false
  /// How often the attempt sent the request.
  var sends = 0
  /// The route of an attempt; `nil` if the request was not sent, and for a call.
  var route: RouteReport?
  /// The outcome of the cache; `nil` without a response, and for an attempt.
  var cache: CacheStatus.Outcome?
  var error: NetOptError?
  /// Whether another attempt of a hedged call got a response first, so that this one was cancelled.
  var isOvertaken = false
  /// When the call began, from which the times in `route` count.
  let callStarted: MonotonicInstant
}
