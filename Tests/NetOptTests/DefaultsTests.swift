import NetOpt
import NetOptCore
import NetOptLocking
import NetOptTestSupport
import TestTools
import Testing

/// What requests get that do not say otherwise: time limit, header fields, base URL.
@Suite struct DefaultsTests {
  private static let address = IPAddress.loopback

  private static func stub(_ outcome: StubOutcome = .respond()) -> StubTransport {
    StubTransport([address: outcome], resolver: StubResolver("api.test", [address]))
  }

  @Test("requests get the default fields that they do not have, whatever the case of the names")
  func fields() async throws {
    var random = SplitMix64(seed: 3)
    let names = ["Accept", "X-Request-Source", "accept-language", "Content-Type"]
    for _ in 0..<200 {
      let draw = { (prefix: String) -> HeaderFields in
        var fields = HeaderFields()
        for name in names where random.below(2) == 0 {
          fields.append(HeaderField(random.below(2) == 0 ? name : name.uppercased(), prefix + name))
        }
        return fields
      }
      var configuration = ClientConfiguration()
      configuration.defaults.headers = draw("default ")
      let own = draw("own ")
      let transport = Self.stub()
      let client = try NetOptClient(configuration, transport: transport)
      _ = try await client.execute(try NetOptRequest(.get, "https://api.test/", headers: own))
      let sent = try #require(transport.received.first?.request.headers)
      for name in names {
        #expect(
          sent.values(of: name) == [own[name] ?? configuration.defaults.headers[name]].compactMap(\.self))
      }
      await client.shutdown()
    }
  }

  @Test(
    "default fields that would leak credentials or break requests are refused",
    arguments: [
      ("authorization", "Basic eA=="), ("Cookie", "a=b"), ("X-Client-Secret", "s"), ("X-Api-Key", "k"),
      ("X-Own-Credential", "c"), ("Host", "a.test"), ("Content-Length", "1"), ("Idempotency-Key", "order"),
      ("Range", "bytes=0-"), ("Content-Encoding", "gzip"),
      ("connection", "close"), ("If-None-Match", "e-tag"), ("Bad Name", "x"),
      ("X-Injected", "a\r\nb: c"),
    ])
  func refusedFields(_ name: String, _ value: String) {
    var configuration = ClientConfiguration()
    configuration.cache = ClientConfiguration.Cache()
    configuration.cache?.credentialFields.insert("X-Own-Credential")
    configuration.defaults.headers = [name: value]
    let error = #expect(throws: NetOptError.self) { try NetOptClient(configuration, transport: Self.stub()) }
    #expect(error?.code == .invalidConfiguration)
    #expect(error?.message.contains("defaults.headers") == true)
    if value.count > 3 { #expect(error?.message.contains(value) == false) }
  }

  @Test(
    "a call has the time limit of its request, else the default, and an interceptor may change either",
    arguments: 1...60 as ClosedRange<UInt64>)
  func timeLimits(seed: UInt64) async throws {
    var random = SplitMix64(seed: seed)
    let limits: [Duration?] = [.seconds(1), .seconds(5), .seconds(90), nil]
    let usual = limits.randomElement(using: &random)!
    let own = random.below(2) == 0 ? limits.randomElement(using: &random) : .none
    let changed = random.below(2) == 0 ? limits.randomElement(using: &random) : .none
    let expected = changed ?? own ?? usual
    var configuration = ClientConfiguration()
    configuration.defaults.timeout = usual
    if random.below(2) == 0 || changed != nil { configuration.interceptors = [Changing(limit: changed)] }
    let clock = ManualTimeSource()
    let transport = StubTransport(
      [Self.address: .respond().taking(answer: .seconds(1000))],
      resolver: StubResolver("api.test", [Self.address]), timeSource: clock)
    let client = try NetOptClient(configuration, transport: transport)
    var request = try NetOptRequest(.post, "https://api.test/")
    if let own { request.options.timeout = own }
    request.options.maxAttempts = 1
    let sent = request
    let call = Task { () -> Result<NetOptResponse, NetOptError> in
      do throws(NetOptError) { return .success(try await client.execute(sent)) } catch {
        return .failure(error)
      }
    }
    try await wait(for: "the request") { transport.received.count == 1 }
    let started = clock.now()
    // Whether the call has ended shows after the clock has moved to just before and to just after the limit.
    if let expected {
      try await wait(for: "the timers") { clock.sleepers > 0 }
      clock.advance(by: expected)
      guard case .failure(let error) = await call.value else {
        Issue.record("the call has no limit of \(expected)")
        return await client.shutdown()
      }
      #expect(error.code == .timeout && clock.now() - started == expected)
    } else {
      try await wait(for: "the timers") { clock.sleepers > 0 }
      clock.advance(by: .seconds(1000))
      #expect(try await call.value.get().status == 200)
    }
    await client.shutdown()
  }

  @Test("an interceptor that sends a request of its own keeps the time limit of the call")
  func ownRequest() async throws {
    struct Replacing: Interceptor {
      func intercept(_ request: NetOptRequest, next: InterceptorChain) async throws(NetOptError)
        -> NetOptResponse
      {
        try await next.proceed(try NetOptRequest(.get, "https://api.test/mirror"))
      }
    }
    var configuration = ClientConfiguration()
    configuration.defaults.timeout = .seconds(5)
    configuration.interceptors = [Replacing()]
    let clock = ManualTimeSource()
    let transport = StubTransport(
      [Self.address: .noAnswer], resolver: StubResolver("api.test", [Self.address]), timeSource: clock)
    let client = try NetOptClient(configuration, transport: transport)
    let call = Task { try await client.execute(NetOptRequest(.get, "https://api.test/")) }
    try await wait(for: "the request") { transport.received.count == 1 && clock.sleepers > 0 }
    clock.advance(by: .seconds(5))
    let error = await #expect(throws: NetOptError.self) { try await call.value }
    #expect(error?.code == .timeout)
    await client.shutdown()
  }

  /// Gives each request another time limit; none if `limit` is `.none`.
  private struct Changing: Interceptor {
    let limit: Duration??
    func intercept(_ request: NetOptRequest, next: InterceptorChain) async throws(NetOptError)
      -> NetOptResponse
    {
      var request = request
      if let limit { request.options.timeout = limit }
      return try await next.proceed(request)
    }
  }

  @Test(
    "a relative URL leads below the base URL, as in RFC 3986 with the path as a folder",
    arguments: [
      ("https://api.test", "users/7", "https://api.test/users/7"),
      ("https://api.test/v1", "users/7", "https://api.test/v1/users/7"),
      ("https://api.test/v1/", "users/7", "https://api.test/v1/users/7"),
      ("https://api.test/v1", "/users/7", "https://api.test/users/7"),
      ("https://api.test:8443/v1", "?q=1", "https://api.test:8443/v1/?q=1"),
      ("https://api.test/v1?key=old", "users", "https://api.test/v1/users"),
      ("https://api.test/v1", "", "https://api.test/v1/"),
      ("https://api.test/v1", "https://api.test/other", "https://api.test/other"),
      ("https://api.test/v1", "HTTPS://API.test:443/other", "https://api.test/other"),
    ])
  func references(_ base: String, _ reference: String, _ expected: String) throws {
    var configuration = ClientConfiguration()
    configuration.defaults.baseURL = try HTTPURL(base)
    let client = try NetOptClient(configuration, transport: Self.stub())
    #expect(try client.request(.get, reference).url == HTTPURL(expected))
  }

  @Test(
    "a reference that leads to another origin, or has a space, is refused",
    arguments: [
      "//b.test/x", "https://b.test/", "http://api.test/", "https://api.test:444/", "///b.test",
      "search?q=a b", " users",
    ])
  func otherOrigins(_ reference: String) throws {
    var configuration = ClientConfiguration()
    configuration.defaults.baseURL = try HTTPURL("https://api.test/v1")
    let client = try NetOptClient(configuration, transport: Self.stub())
    let error = #expect(throws: NetOptError.self) { try client.request(.get, reference) }
    #expect(error?.code == .invalidURL)
  }

  @Test("without a base URL, only absolute URLs make requests")
  func noBase() throws {
    let client = try NetOptClient(ClientConfiguration(), transport: Self.stub())
    #expect(try client.request(.get, "https://b.test/x").url.host == "b.test")
    #expect(throws: NetOptError.self) { try client.request(.get, "users/7") }
  }
}
