import NetOptCaching
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOpt
import NetOptLocking

@Suite struct RedirectInterceptorTests {
  /// The end of a chain of interceptors. Answers requests from a table and records them.
  private final class Script: Interceptor {
    /// The status and the `Location` of the response, by the URL of the request. Other URLs get status 200.
    private let answers: [String: (Int, String)]
    private let seen = Locked<[NetOptRequest]>([])
    /// The requests so far, in order.
    var requests: [NetOptRequest] { seen.withLock { $0 } }

    init(_ answers: [String: (Int, String)]) { self.answers = answers }

    func intercept(_ request: NetOptRequest, next: InterceptorChain) async throws(NetOptError)
      -> NetOptResponse
    {
      seen.withLock { $0.append(request) }
      let answer = answers[request.url.description]
      let fields: HeaderFields = answer.map { ["Location": $0.1] } ?? [:]
      let plan = RoutePlan(
        origin: request.url.origin, policy: .fastest, legs: [RoutePlan.Leg(.dns, source: .dns)])
      return NetOptResponse(
        url: request.url, head: ResponseHead(status: answer?.0 ?? 200, fields: fields),
        body: ResponseBody([]),
        route: RouteReport(plan: plan, legs: []))
    }
  }

  /// An empty body that counts how often `next` is called.
  private final class EndlessBody: BodySource {
    private let reads = Locked(0)
    var timesRead: Int { reads.withLock { $0 } }
    var timings: Timings { Timings() }

    func next() async throws(NetOptError) -> [UInt8]? {
      reads.withLock { $0 += 1 }
      return nil
    }
  }

  /// Redirects a request for `/` to `/next`, with `body` as the body of the redirect. Answers other requests
  /// with status 200.
  private struct RedirectWithBody: Interceptor {
    let body: EndlessBody

    func intercept(_ request: NetOptRequest, next: InterceptorChain) async throws(NetOptError)
      -> NetOptResponse
    {
      let isFirst = request.url.target == "/"
      let plan = RoutePlan(
        origin: request.url.origin, policy: .fastest, legs: [RoutePlan.Leg(.dns, source: .dns)])
      return NetOptResponse(
        url: request.url,
        head: ResponseHead(status: isFirst ? 302 : 200, fields: isFirst ? ["Location": "/next"] : [:]),
        body: isFirst ? ResponseBody(body) : ResponseBody([]), route: RouteReport(plan: plan, legs: []))
    }
  }

  @Test("a redirect is followed without reading its body")
  func unreadBody() async throws {
    let body = EndlessBody()
    let context = CallContext(id: 1, started: MonotonicInstant(nanoseconds: 0), deadline: nil)
    let chain = InterceptorChain([RedirectInterceptor(), RedirectWithBody(body: body)], context: context)
    let response = try await chain.proceed(try NetOptRequest(.get, "https://a.test/"))
    #expect(response.status == 200)
    #expect(body.timesRead == 0)
  }

  /// Sends a request through a redirect interceptor to a script. Returns the final response.
  private func follow(_ request: NetOptRequest, _ script: Script) async throws(NetOptError) -> NetOptResponse
  {
    let context = CallContext(id: 1, started: MonotonicInstant(nanoseconds: 0), deadline: nil)
    return try await InterceptorChain([RedirectInterceptor(), script], context: context).proceed(request)
  }

  @Test("a relative Location is resolved against the URL of the redirected request")
  func relativeReference() async throws {
    let script = Script([
      "https://a.test/x/y?q": (302, "../z?r#f"), "https://a.test/z?r": (301, "//b.test:8443/w"),
    ])
    let response = try await follow(try NetOptRequest(.get, "https://a.test/x/y?q"), script)
    #expect(response.status == 200)
    #expect(response.url.description == "https://b.test:8443/w")
    #expect(script.requests.count == 3)
  }

  @Test(
    "a redirect keeps or changes method, body and Content-Type by its status",
    arguments: [
      (301, "POST", "GET"), (302, "POST", "GET"), (303, "POST", "GET"), (303, "PUT", "GET"),
      (303, "HEAD", "HEAD"),
      (301, "PUT", "PUT"), (302, "DELETE", "DELETE"), (307, "POST", "POST"), (308, "POST", "POST"),
    ])
  func methods(_ status: Int, _ method: String, _ expected: String) async throws {
    let script = Script(["https://a.test/": (status, "/b")])
    let request = try NetOptRequest(
      NetOptRequest.Method(rawValue: method), "https://a.test/",
      headers: [
        "Content-Type": "text/plain", "X": "1", "Digest": "d", "Content-Digest": "d", "Repr-Digest": "d",
        "Content-MD5": "d", "Last-Modified": "d",
      ],
      body: method == "HEAD" ? .none : .text("body"))
    _ = try await follow(request, script)
    let second = try #require(script.requests.last)
    #expect(second.method.rawValue == expected)
    #expect(second.headers["X"] == "1")
    let keepsBody = expected == method && method != "HEAD"
    #expect((second.body.length == 4) == keepsBody)
    #expect((second.headers["Content-Type"] != nil) == (expected == method))
    // Content-specific fields go with the content (RFC 9110, section 15.4).
    #expect(second.headers.count { $0.value == "d" } == (expected == method ? 5 : 0))
  }

  @Test("a redirect to another origin drops the credentials and the pinned address")
  func credentials() async throws {
    let script = Script(["https://a.test/": (302, "/same"), "https://a.test/same": (302, "https://b.test/")])
    let headers: HeaderFields = ["Authorization": "secret", "Cookie": "c=1", "X": "1"]
    var request = try NetOptRequest(.get, "https://a.test/", headers: headers)
    request.options.routing = .pinned(.loopback)
    _ = try await follow(request, script)
    #expect(script.requests.map { $0.headers["Authorization"] } == ["secret", "secret", nil])
    #expect(script.requests.map { $0.headers["Cookie"] } == ["c=1", "c=1", nil])
    #expect(script.requests.last?.headers["X"] == "1")
    // The caller chose the pinned address for the first host.
    #expect(script.requests.map(\.options.routing) == [.pinned(.loopback), .pinned(.loopback), .automatic])
  }

  @Test("a redirect to another origin drops every usual and configured credential field")
  func credentialFields() async throws {
    let script = Script(["https://a.test/": (302, "https://a.test:8443/")])
    let fields = CredentialFields.usual.sorted() + ["X-Ours"]
    let request = try NetOptRequest(
      .get, "https://a.test/", headers: HeaderFields(fields.map { HeaderField($0.lowercased(), "secret") }))
    let context = CallContext(id: 1, started: MonotonicInstant(nanoseconds: 0), deadline: nil)
    _ = try await InterceptorChain(
      [
        RedirectInterceptor(credentialFields: CredentialFields(CredentialFields.usual.union(["X-Ours"]))),
        script,
      ],
      context: context
    )
    .proceed(request)
    #expect(script.requests.map(\.headers.count) == [fields.count, 0])
  }

  @Test("a redirect from another origin to a signed host is handed back, not followed")
  func signedHosts() async throws {
    let script = Script([
      "https://b.test/": (302, "https://signed.test/pay"), "https://signed.test/": (302, "https://b.test/x"),
      "https://signed.test/a": (302, "/b"), "https://signed.test/c": (307, "https://signed.test:8443/pay"),
      "https://signed.test:8443/": (302, "https://signed.test/pay"),
      "http://signed.test/": (308, "https://signed.test/pay"),
      "https://signed.test/d": (302, "https://also.test/pay"),
    ])
    let context = CallContext(id: 1, started: MonotonicInstant(nanoseconds: 0), deadline: nil)
    let chain = InterceptorChain(
      [RedirectInterceptor(trustingHosts: ["signed.test", "also.test"]), script], context: context)
    // For each URL, the status of the response that the caller gets. A redirect to `/pay` leads to a signed
    // host from another origin, so the caller gets this redirect itself. The other redirects are followed.
    for (url, status) in [
      ("https://b.test/", 302), ("https://signed.test/", 200), ("https://signed.test/a", 200),
      ("https://signed.test/c", 307), ("https://signed.test:8443/", 302), ("http://signed.test/", 308),
      ("https://signed.test/d", 302),
    ] {
      #expect(try await chain.proceed(try NetOptRequest(.get, url)).status == status, "\(url)")
    }
    #expect(!script.requests.contains { $0.url.path == "/pay" })
  }

  @Test("a redirect to another origin drops header fields whose names suggest secrets")
  func secretNames() async throws {
    let script = Script(["https://a.test/": (307, "https://b.test/")])
    let fields: HeaderFields = [
      "CF-Access-Client-Secret": "1", "X-MBX-APIKEY": "1", "Circle-Token": "1", "Fastly-Key": "1",
      "X-CSRF-Token": "1",
      "Signature": "1", "Accept": "1", "Idempotency-Key": "1", "X-Request-Id": "1",
    ]
    _ = try await follow(try NetOptRequest(.get, "https://a.test/", headers: fields), script)
    #expect(script.requests.last?.headers.map(\.name) == ["Accept", "Idempotency-Key", "X-Request-Id"])
  }

  @Test("error messages do not show the secrets in a Location")
  func secretsInLocations() async throws {
    for location in ["/?token=s3cret", "ftp://user:s3cret@b.test/", "https://b.test:0/?token=s3cret"] {
      let script = Script([
        "https://a.test/": (302, location), "https://a.test/?token=s3cret": (302, location),
      ])
      var request = try NetOptRequest(.get, "https://a.test/")
      request.options.maxRedirects = 1
      let limited = request
      let error = await #expect(throws: NetOptError.self) { _ = try await follow(limited, script) }
      #expect(error?.message.contains("s3cret") == false)
    }
  }

  @Test("a redirect from https to http is handed back, not followed")
  func downgrade() async throws {
    let script = Script(["https://a.test/": (302, "http://a.test/")])
    let response = try await follow(try NetOptRequest(.get, "https://a.test/"), script)
    #expect(response.status == 302)
    #expect(script.requests.count == 1)
  }

  @Test("a 307 for a streamed body is handed back, because the stream cannot be sent again")
  func sentStream() async throws {
    let script = Script(["https://a.test/": (307, "/b")])
    let body = RequestBody.stream(AsyncStream<[UInt8]> { $0.finish() })
    let response = try await follow(try NetOptRequest(.post, "https://a.test/", body: body), script)
    #expect(response.status == 307)
  }

  @Test("a 307 for a file is followed with the same body")
  func sentFile() async throws {
    let path = try TemporaryDirectory.make("redirect") + "/body"
    try TextFile.write("content", to: path)
    let script = Script(["https://a.test/": (307, "/b")])
    let response = try await follow(
      try NetOptRequest(.post, "https://a.test/", body: .file(path)), script)
    #expect(response.status == 200)
    #expect(script.requests.map(\.body.length) == [7, 7])
  }

  @Test("more redirects than maxRedirects throw, and with 0 the redirect is handed back")
  func redirectLimit() async throws {
    let script = Script(["https://a.test/": (302, "/")])
    var request = try NetOptRequest(.get, "https://a.test/")
    request.options.maxRedirects = 3
    let limited = request
    let error = await #expect(throws: NetOptError.self) { _ = try await follow(limited, script) }
    #expect(error?.code == .tooManyRedirects)
    #expect(script.requests.count == 4)
    request.options.maxRedirects = 0
    #expect(try await follow(request, script).status == 302)
  }

  @Test(
    "a Location that cannot be requested throws invalidURL with the route",
    arguments: ["ftp://a.test/", "https://user@a.test/", "https://a.test:0/", "//"])
  func invalidLocation(_ location: String) async throws {
    let script = Script(["https://a.test/": (302, location)])
    let error = await #expect(throws: NetOptError.self) {
      _ = try await follow(try NetOptRequest(.get, "https://a.test/"), script)
    }
    #expect(error?.code == .invalidURL && error?.phase == .receive && error?.route != nil)
    #expect(
      error?.message.hasPrefix("https://a.test/ was answered 302, and netopt cannot request its Location: ")
        == true)
  }

  @Test("a response with another status than a redirect's is handed back")
  func otherStatuses() async throws {
    for status in [200, 300, 304, 305, 404] {
      let script = Script(["https://a.test/": (status, "/b")])
      #expect(try await follow(try NetOptRequest(.get, "https://a.test/"), script).status == status)
    }
  }

  @Test("a Location of more than 16 KiB throws an error that says so")
  func longReference() async throws {
    let long = "/" + String(repeating: "a", count: HTTPURL.longestReference)
    let script = Script(["https://a.test/": (302, long)])
    let error = await #expect(throws: NetOptError.self) {
      _ = try await InterceptorChain(
        [RedirectInterceptor(), script],
        context: CallContext(id: 1, started: MonotonicInstant(nanoseconds: 0), deadline: nil)
      ).proceed(NetOptRequest(.get, "https://a.test/"))
    }
    #expect(error?.code == .invalidURL && error?.phase == .receive)
    #expect(error?.message.contains("a Location of more than 16 KiB") == true, "\(error?.message ?? "")")
    #expect(script.requests.count == 1)
  }
}
