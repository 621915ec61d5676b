/// A response: its head, and a body that streams. A value that is one reference: copies share what they hold until one of them
/// is changed.
public struct NetOptResponse: Sendable {
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

  /// What was requested in the end, after redirects.
  @inlinable public var url: HTTPURL {
    _read { yield parts.value.url }
    _modify { yield &parts.value.url }
  }
  /// The head.
  @inlinable package var head: ResponseHead {
    _read { yield parts.value.head }
    _modify { yield &parts.value.head }
  }
  /// The body. Read it to its end, or let go of the response: that cancels the transfer.
  @inlinable public var body: ResponseBody {
    _read { yield parts.value.body }
    _modify { yield &parts.value.body }
  }
  /// The way the request took, and why.
  @inlinable public var route: RouteReport {
    _read { yield parts.value.route }
    _modify { yield &parts.value.route }
  }
  /// The endpoint that answered, when there was one.
  @inlinable public var remote: IPEndpoint? {
    _read { yield parts.value.remote }
    _modify { yield &parts.value.remote }
  }
  /// Whether the connection had been used before.
  @inlinable public var reused: Bool {
    _read { yield parts.value.reused }
    _modify { yield &parts.value.reused }
  }
  /// How the connection was secured; `nil` for plain HTTP.
  @inlinable public var tls: TLSReport? {
    _read { yield parts.value.tls }
    _modify { yield &parts.value.tls }
  }
  /// What the kernel measured of the connection; `nil` unless it was opened for this request.
  @inlinable public var socket: SocketReport? {
    get { parts.value.socket }
    set { parts.value.socket = newValue }
  }
  /// How often the request was sent, redirects not counted; 0 when it was answered from the cache.
  @inlinable public var attempts: Int {
    _read { yield parts.value.attempts }
    _modify { yield &parts.value.attempts }
  }
  /// The call's attempts that did not give this response, in the order in which they began: those that failed before it,
  /// and a copy that was slower. Empty for nearly all calls.
  @inlinable public var otherAttempts: [AttemptReport] {
    get { parts.value.otherAttempts }
    set { parts.value.otherAttempts = newValue }
  }

  /// What the cache had to do with it.
  @inlinable public var cacheStatus: CacheStatus {
    get { parts.value.cacheStatus }
    set { parts.value.cacheStatus = newValue }
  }

  /// Makes a response that no server gave, for an interceptor that answers by itself.
  ///
  /// - Parameters:
  ///   - url: what was requested.
  ///   - status: from 100 to 999.
  ///   - headers: the header fields.
  ///   - body: the body.
  public init(url: HTTPURL, status: Int, headers: HeaderFields = [:], body: ResponseBody = ResponseBody([])) {
    let plan = RoutePlan(origin: url.origin, policy: .interceptor, legs: [RoutePlan.Leg(.dns, source: .dns)])
    self.init(
      url: url, head: ResponseHead(status: status, fields: headers), body: body,
      route: RouteReport(plan: plan, legs: []), attempts: 0)
  }

  /// Makes a response.
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
  /// The version of HTTP that was used.
  public var version: HTTPVersion { head.version }
  /// The header fields. They are parsed each time: keep them when they are needed more than once.
  public var headers: HeaderFields { head.fields }
  /// What the phases took, as far as they are over: `transfer` and `total` grow until the body has ended.
  public var timings: Timings { body.timings }
}

/// How a connection was secured.
public struct TLSReport: Hashable, Sendable {
  /// Whether the certificate was checked: chain and name.
  public var verified: Bool
  /// The subject of the server's certificate, as "CN = api.example.com"; `nil` for a connection that was there before, and when
  /// libcurl does not tell.
  public var subject: String?
  /// The certificate's end, in seconds since 1970 in UTC; `nil` as with the subject.
  public var notAfter: Int64?
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
  // Nanoseconds: a `Duration` has 128 bits, which are a burden where timings are taken for each request.
  package var queueNanoseconds: Int64 = 0
  package var dnsNanoseconds: Int64 = 0
  package var connectNanoseconds: Int64 = 0
  package var tlsNanoseconds: Int64 = 0
  package var sendNanoseconds: Int64 = 0
  package var waitNanoseconds: Int64 = 0
  package var transferNanoseconds: Int64 = 0

  /// From the start of the call until the leg that won was started, and its wait for a connection.
  public var queue: Duration {
    get { .nanoseconds(queueNanoseconds) }
    set { queueNanoseconds = newValue.nanoseconds }
  }
  /// The look-up.
  public var dns: Duration {
    get { .nanoseconds(dnsNanoseconds) }
    set { dnsNanoseconds = newValue.nanoseconds }
  }
  /// The TCP handshake.
  public var connect: Duration {
    get { .nanoseconds(connectNanoseconds) }
    set { connectNanoseconds = newValue.nanoseconds }
  }
  /// The TLS handshake.
  public var tls: Duration {
    get { .nanoseconds(tlsNanoseconds) }
    set { tlsNanoseconds = newValue.nanoseconds }
  }
  /// Sending the request.
  public var send: Duration {
    get { .nanoseconds(sendNanoseconds) }
    set { sendNanoseconds = newValue.nanoseconds }
  }
  /// From the request's last byte to the response's first.
  public var wait: Duration {
    get { .nanoseconds(waitNanoseconds) }
    set { waitNanoseconds = newValue.nanoseconds }
  }
  /// From the response's first byte to its last.
  public var transfer: Duration {
    get { .nanoseconds(transferNanoseconds) }
    set { transferNanoseconds = newValue.nanoseconds }
  }

  /// Makes timings of nothing.
  public init() {}

  /// From the start of the call until its request, in the attempt that was answered, could be sent.
  package var untilSent: Duration {
    .nanoseconds(queueNanoseconds + dnsNanoseconds + connectNanoseconds + tlsNanoseconds)
  }

  /// From the start of the call to the response's last byte.
  public var total: Duration { queue + dns + connect + tls + send + wait + transfer }

  /// From the start of the call to the response's first byte.
  public var timeToFirstByte: Duration { total - transfer }
}

/// What the kernel measured of a connection until it was ready for the request (`TCP_INFO`, tcp(7)).
public struct SocketReport: Hashable, Sendable {
  /// The smoothed round-trip time.
  public let roundTrip: Duration
  /// How many segments were sent again.
  public let retransmits: Int

  /// Makes a report.
  public init(roundTrip: Duration, retransmits: Int) {
    self.roundTrip = roundTrip
    self.retransmits = retransmits
  }
}
