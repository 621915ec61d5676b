import NetOptCore

/// A request and its answer after the body has ended, as `get` reports them.
struct Exchange: Sendable {
  /// The method of the request.
  var method: NetOptRequest.Method
  /// What was requested in the end, after redirects.
  var url: HTTPURL
  /// The response's head.
  var head: ResponseHead
  /// The endpoint that answered.
  var remote: IPEndpoint?
  /// The way it took.
  var route: RouteReport
  /// How the connection was secured; `nil` for plain HTTP.
  var tls: TLSReport?
  /// What the phases took.
  var timings: Timings
  /// Whether the connection had been used before.
  var reused: Bool
  /// How often the request was sent.
  var attempts: Int
  /// What became of the attempts that did not give the answer.
  var otherAttempts: [AttemptReport]
  /// The number of bytes of the body, decompressed.
  var bodyBytes: Int64
  /// What the cache had to do with it.
  var cacheStatus: CacheStatus
  /// The id of the key that signed the request, or `nil`.
  var signedBy: String?

  /// Takes what is reported from a response whose body has ended.
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
