import NetOptCore

/// What `netopt get` reports about a request and its response, after the end of the body.
struct FinishedExchange: Sendable {
  /// The method of the request.
  var method: NetOptRequest.Method
  /// The URL of the last request, after redirects.
  var url: HTTPURL
  /// The head of the response.
  var head: ResponseHead
  /// The endpoint that sent the response; `nil` if it is unknown, or if no server sent the response (a
  /// response from the cache).
  var remote: IPEndpoint?
  /// The route of the last request.
  var route: RouteReport
  /// The TLS version and verification of the connection; `nil` for plain HTTP.
  var tls: TLSReport?
  /// The durations of the phases of the call, until the end of the body.
  var timings: Timings
  /// Whether the request used a pooled connection.
  var reused: Bool
  /// How often the client sent the last request (`NetOptResponse.attempts`); 0 if the cache served the
  /// response.
  var attempts: Int
  /// The reports of the attempts that did not deliver this response (`NetOptResponse.otherAttempts`).
  var otherAttempts: [AttemptReport]
  /// The number of bytes of the body after decompression.
  var bodyBytes: Int64
  /// The times that the server reports in `Server-Timing`, usually parts of `wait`. Empty when the response
  /// came from the cache or was confirmed: the field may then belong to another call.
  var serverTiming: [ServerTiming]
  /// How the cache handled the request.
  var cacheStatus: CacheStatus
  /// The id of the key with which the client signs requests to the host of the response; `nil` if it does not
  /// sign them. The caller sets it, because a response does not contain it.
  var signedBy: String?

  /// Creates an exchange from a response whose body has ended.
  init(_ method: NetOptRequest.Method, _ response: NetOptResponse, bodyBytes: Int64) {
    self.method = method
    url = response.url
    head = response.head
    remote = response.remote
    route = response.route
    tls = response.tls
    timings = response.timings
    reused = response.reused
    attempts = response.attempts
    otherAttempts = response.otherAttempts
    cacheStatus = response.cacheStatus
    let isOfOrigin = attempts > 0 && (cacheStatus.outcome == .off || cacheStatus.outcome == .miss)
    serverTiming = isOfOrigin ? ServerTiming.metrics(response.headers) : []
    self.bodyBytes = bodyBytes
  }
}
