/// An HTTP response: the head, and a body that arrives while the program reads it. The value has the size of
/// one reference. Copies share their storage until one of them changes.
public struct NetOptResponse: Sendable {
  /// The properties of the response, which its copies share. The accessors of `NetOptResponse` describe them.
  @usableFromInline
  struct Parts: Sendable {
    @usableFromInline var url: HTTPURL
    @usableFromInline var head: ResponseHead
    @usableFromInline var body: ResponseBody
    @usableFromInline var route: RouteReport
    @usableFromInline var remote: IPEndpoint?
    @usableFromInline var reused: Bool
    @usableFromInline var tls: TLSReport?
    @usableFromInline var attempts: Int
    @usableFromInline var otherAttempts: [AttemptReport] = []
    @usableFromInline var cacheStatus = CacheStatus.off
    @usableFromInline var socket: SocketReport?
  }

  @usableFromInline var parts: SharedParts<Parts>

  /// The URL of the last request, after redirects.
  @inlinable public var url: HTTPURL {
    _read { yield parts.value.url }
    _modify { yield &parts.value.url }
  }
  /// The response head.
  @inlinable package var head: ResponseHead {
    _read { yield parts.value.head }
    _modify { yield &parts.value.head }
  }
  /// The body. Read it to its end, or release the response to cancel the transfer.
  @inlinable public var body: ResponseBody {
    _read { yield parts.value.body }
    _modify { yield &parts.value.body }
  }
  /// The route of the request and the reasons for it.
  @inlinable public var route: RouteReport {
    _read { yield parts.value.route }
    _modify { yield &parts.value.route }
  }
  /// The endpoint that sent the response, or that confirmed a stored response with a 304. `nil` if the
  /// request went through a proxy, or if no server sent the response.
  @inlinable public var remote: IPEndpoint? {
    _read { yield parts.value.remote }
    _modify { yield &parts.value.remote }
  }
  /// Whether the request used a pooled connection.
  @inlinable public var reused: Bool {
    _read { yield parts.value.reused }
    _modify { yield &parts.value.reused }
  }
  /// The TLS version and certificate of the connection; `nil` for plain HTTP, and if no server sent the
  /// response.
  @inlinable public var tls: TLSReport? {
    _read { yield parts.value.tls }
    _modify { yield &parts.value.tls }
  }
  /// The kernel's measurements of the connection; `nil` unless the connection was opened for this request.
  @inlinable public var socket: SocketReport? {
    get { parts.value.socket }
    set { parts.value.socket = newValue }
  }
  /// How often the client sent the request: the first time, resends, retries and a hedge. 0 if an interceptor
  /// made the response, or the cache served a response that the origin did not confirm. An attempt without a
  /// response counts at most once. If the call followed redirects, only the last request counts.
  @inlinable public var attempts: Int {
    _read { yield parts.value.attempts }
    _modify { yield &parts.value.attempts }
  }
  /// The reports of the other attempts of the call: those that failed before this response, and a slower
  /// attempt of a hedged call. In starting order; empty for nearly all calls.
  @inlinable public var otherAttempts: [AttemptReport] {
    get { parts.value.otherAttempts }
    set { parts.value.otherAttempts = newValue }
  }

  /// Whether the response comes from the cache, and why.
  @inlinable public var cacheStatus: CacheStatus {
    get { parts.value.cacheStatus }
    set { parts.value.cacheStatus = newValue }
  }

  /// Creates a response for an interceptor that responds without a server.
  ///
  /// - Parameters:
  ///   - url: the URL of the request.
  ///   - status: the status code, from 100 to 999.
  ///   - headers: the header fields.
  ///   - body: the body.
  public init(url: HTTPURL, status: Int, headers: HeaderFields = [:], body: ResponseBody = ResponseBody([])) {
    let plan = RoutePlan(origin: url.origin, policy: .interceptor, legs: [RoutePlan.Leg(.dns, source: .dns)])
    self.init(
      url: url, head: ResponseHead(status: status, fields: headers), body: body,
      route: RouteReport(plan: plan, legs: []), attempts: 0)
  }

  /// Creates a response.
  package init(
    url: HTTPURL, head: ResponseHead, body: ResponseBody, route: RouteReport, remote: IPEndpoint? = nil,
    reused: Bool = false, tls: TLSReport? = nil, attempts: Int = 1
  ) {
    parts = SharedParts(
      Parts(
        url: url, head: head, body: body, route: route, remote: remote, reused: reused, tls: tls,
        attempts: attempts))
  }

  /// The status code.
  public var status: Int { head.status }
  /// The version of HTTP of the response.
  public var version: HTTPVersion { head.version }
  /// The header fields. Each access parses them again: store the result to use it more than once.
  public var headers: HeaderFields { head.fields }
  /// The durations of the phases of the exchange so far. `transfer` and `total` grow until the body has
  /// ended.
  public var timings: Timings { body.timings }
}

/// The TLS version and certificate of a connection.
public struct TLSReport: Hashable, Sendable {
  /// Whether the client verified the certificate's chain and name. False for `Verification.none`.
  public var verified: Bool
  /// The subject of the server's certificate, such as "CN = api.example.com"; `nil` for a pooled connection,
  /// or if libcurl does not report the subject.
  public var subject: String?
  /// When the certificate expires, in seconds since 1970-01-01 UTC; `nil` under the same conditions as
  /// `subject`.
  public var notAfter: Int64?
  /// The TLS version, such as "TLSv1.3"; `nil` if libcurl does not report it.
  public var version: String?

  /// Creates a report.
  public init(verified: Bool, version: String? = nil) {
    self.verified = verified
    self.version = version
  }
}

/// The durations of the phases of an exchange. The phases follow each other without gaps, so their sum is
/// `total`.
public struct Timings: Hashable, Sendable {
  // The durations in nanoseconds, because every request records them: a `Duration` has 128 bits.
  package var queueNanoseconds: Int64 = 0
  package var dnsNanoseconds: Int64 = 0
  package var connectNanoseconds: Int64 = 0
  package var tlsNanoseconds: Int64 = 0
  package var sendNanoseconds: Int64 = 0
  package var waitNanoseconds: Int64 = 0
  package var transferNanoseconds: Int64 = 0

  /// The time before the connection: from the start of the call until the winning leg opened its socket, or
  /// had a pooled connection. Does not contain `dns`.
  public var queue: Duration {
    get { .nanoseconds(queueNanoseconds) }
    set { queueNanoseconds = newValue.nanoseconds }
  }
  /// The duration of the DNS look-up; zero if the address of the winning leg did not come from DNS.
  public var dns: Duration {
    get { .nanoseconds(dnsNanoseconds) }
    set { dnsNanoseconds = newValue.nanoseconds }
  }
  /// The duration of the TCP handshake; zero for a pooled connection.
  public var connect: Duration {
    get { .nanoseconds(connectNanoseconds) }
    set { connectNanoseconds = newValue.nanoseconds }
  }
  /// The duration of the TLS handshake; zero for a pooled connection and for plain HTTP.
  public var tls: Duration {
    get { .nanoseconds(tlsNanoseconds) }
    set { tlsNanoseconds = newValue.nanoseconds }
  }
  /// The time from the readiness of the connection until the request was sent.
  public var send: Duration {
    get { .nanoseconds(sendNanoseconds) }
    set { sendNanoseconds = newValue.nanoseconds }
  }
  /// The time from the last byte of the request to the first byte of the response. For a call that got the
  /// response of another call's request (`CacheStatus.isCollapsed`), the time from its start.
  public var wait: Duration {
    get { .nanoseconds(waitNanoseconds) }
    set { waitNanoseconds = newValue.nanoseconds }
  }
  /// The time from the first byte of the response to its last byte.
  public var transfer: Duration {
    get { .nanoseconds(transferNanoseconds) }
    set { transferNanoseconds = newValue.nanoseconds }
  }

  /// Creates timings that are all zero.
  public init() {}

  /// The time from the start of the call until the connection was ready for the request.
  package var untilSent: Duration {
    .nanoseconds(queueNanoseconds + dnsNanoseconds + connectNanoseconds + tlsNanoseconds)
  }

  /// `total` in nanoseconds.
  package var totalNanoseconds: Int64 {
    queueNanoseconds.addingClamped(dnsNanoseconds).addingClamped(connectNanoseconds)
      .addingClamped(tlsNanoseconds).addingClamped(sendNanoseconds).addingClamped(waitNanoseconds)
      .addingClamped(transferNanoseconds)
  }

  /// The time from the start of the call to the last byte of the response.
  public var total: Duration { .nanoseconds(totalNanoseconds) }

  /// The time from the start of the call to the first byte of the response.
  public var timeToFirstByte: Duration { total - transfer }
}

/// The kernel's measurements of a TCP connection (`TCP_INFO`, tcp(7)), read when the connection was ready for
/// its first request.
public struct SocketReport: Hashable, Sendable {
  /// The smoothed round-trip time of TCP segments.
  public let roundTrip: Duration
  /// The number of segments that the kernel sent again, since the connection was opened.
  public let retransmits: Int

  /// Creates a report.
  public init(roundTrip: Duration, retransmits: Int) {
    self.roundTrip = roundTrip
    self.retransmits = retransmits
  }
}
