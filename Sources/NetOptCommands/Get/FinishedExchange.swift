import NetOptCore

/// A request and its response after the end of the body, for the report of `get`.
struct FinishedExchange: Sendable {
  /// The method of the request.
  var method: NetOptRequest.Method
  /// The URL of the response, after redirects.
  var url: HTTPURL
  /// The head of the response.
  var head: ResponseHead
  /// The endpoint that responded.
  var remote: IPEndpoint?
  /// The route of the request.
  var route: RouteReport
  /// The TLS version and verification of the connection; `nil` for plain HTTP.
  var tls: TLSReport?
  /// The durations of the phases.
  var timings: Timings
  /// Whether the request used a pooled connection.
  var reused: Bool
  /// The number of times the request was sent.
  var attempts: Int
  /// The attempts that did not give the response, with their outcomes.
  var otherAttempts: [AttemptReport]
  /// The number of bytes of the body after decompression.
  var bodyBytes: Int64
  /// How the cache handled the request.
  var cacheStatus: CacheStatus
  /// The id of the key that signed the request; `nil` for an unsigned request.
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
    self.bodyBytes = bodyBytes
  }
}
