/// A response: its head, and a body that streams.
public struct HTTPResponse: Sendable {
  /// What was requested in the end, after redirects.
  public var url: HTTPURL
  /// The head.
  public var head: ResponseHead
  /// The body. Read it to its end, or let go of the response: that cancels the transfer.
  public var body: ResponseBody
  /// The way the request took, and why.
  public var route: RouteReport
  /// The endpoint that answered, when there was one.
  public var remote: Endpoint?
  /// Whether the connection had been used before.
  public var reused: Bool
  /// How the connection was secured; `nil` for plain HTTP.
  public var tls: TLSReport?
  /// How often the request was sent, redirects not counted.
  public var attempts: Int

  /// Makes a response.
  public init(
    url: HTTPURL, head: ResponseHead, body: ResponseBody, route: RouteReport, remote: Endpoint? = nil,
    reused: Bool = false, tls: TLSReport? = nil, attempts: Int = 1
  ) {
    self.url = url
    self.head = head
    self.body = body
    self.route = route
    self.remote = remote
    self.reused = reused
    self.tls = tls
    self.attempts = attempts
  }

  /// The status code.
  public var status: Int { head.status }
  /// The version of HTTP that was used.
  public var version: HTTPVersion { head.version }
  /// The header fields. They are parsed each time: keep them when they are needed more than once.
  public var headers: HTTPFields { head.fields }
  /// What the phases took, as far as they are over: `transfer` and `total` grow until the body has ended.
  public var timings: Timings { body.timings }
}

/// How a connection was secured.
public struct TLSReport: Hashable, Sendable {
  /// Whether the certificate was checked: chain and name.
  public var verified: Bool
  /// The protocol's version, as "TLSv1.3"; `nil` when libcurl does not tell.
  public var version: String?

  /// Makes a report.
  public init(verified: Bool, version: String? = nil) {
    self.verified = verified
    self.version = version
  }
}

/// What the phases of an exchange took. They follow each other without a gap: their sum is `total`.
public struct Timings: Hashable, Sendable {
  /// From the start of the call until the leg that won was started, and its wait for a connection.
  public var queue = Duration.zero
  /// The look-up.
  public var dns = Duration.zero
  /// The TCP handshake.
  public var connect = Duration.zero
  /// The TLS handshake.
  public var tls = Duration.zero
  /// Sending the request.
  public var send = Duration.zero
  /// From the request's last byte to the response's first.
  public var wait = Duration.zero
  /// From the response's first byte to its last.
  public var transfer = Duration.zero

  /// Makes timings of nothing.
  public init() {}

  /// From the start of the call to the response's last byte.
  public var total: Duration { queue + dns + connect + tls + send + wait + transfer }

  /// From the start of the call to the response's first byte.
  public var timeToFirstByte: Duration { total - transfer }
}
