import NetOpt
import NetOptCore
import NetOptLocking
import NetOptTestSupport
import TestTools
import Testing

/// Credentials that the client adds to requests.
@Suite struct AuthorizationTests {
  private struct Refused: Error, Equatable {}

  /// The valid token of a server, and what came.
  private final class Record: Sendable {
    let valid: Locked<String>
    /// The values of `Authorization` that came, `-` for none.
    let seen = Locked<[String]>([])
    init(valid: String) { self.valid = Locked(valid) }
  }

  /// A server whose valid token changes. It answers 401 to other tokens.
  private struct TokenServer {
    let record: Record
    let server: LoopbackServer

    /// - Parameter redirects: the locations of redirects, by the target of the request.
    init(valid: String, redirects: [String: String] = [:]) throws {
      let record = Record(valid: valid)
      self.record = record
      server = try LoopbackServer(
        .raw { exchange in
          _ = try exchange.readBody()
          let value = exchange.request.fields["Authorization"] ?? "-"
          record.seen.withLock { $0.append(value) }
          if let location = redirects[exchange.request.target] {
            return try exchange.respond(307, ["Location": location])
          }
          try exchange.respond(record.valid.withLock { value == "Bearer \($0)" } ? 200 : 401)
        })
    }

    var seen: [String] { record.seen.withLock { $0 } }
  }

  /// The arguments of the closure that fetches tokens.
  private final class Fetches: Sendable {
    let rejected = Locked<[String?]>([])
  }

  /// Tokens to give out, one after the other.
  private final class Tokens: Sendable {
    private let left = Locked(["bad", "worse", "worst"])
    func next() -> String { left.withLock { $0.removeFirst() } }
  }

  private static func client(_ authorization: ClientConfiguration.Authorization...) throws -> NetOptClient {
    var configuration = ClientConfiguration()
    configuration.proxy = .none
    configuration.authorization = authorization.map { setting in
      var setting = setting
      setting.allowsUnprotected = true
      return setting
    }
    return try NetOptClient(configuration)
  }

  @Test(
    "concurrent calls get the token that is valid, and each token is fetched once",
    .timeLimit(.minutes(1)), arguments: 1...12 as ClosedRange<UInt64>)
  func rotation(seed: UInt64) async throws {
    var random = SplitMix64(seed: seed)
    let lab = try TokenServer(valid: "t0")
    defer { lab.server.stop() }
    let record = lab.record
    let fetches = Fetches()
    let pause = random.below(2) == 0
    let client = try Self.client(
      .bearer(hosts: ["127.0.0.1"]) { rejected in
        fetches.rejected.withLock { $0.append(rejected) }
        if pause { await Task.yield() }
        return record.valid.withLock { $0 }
      })
    let url = "http://\(lab.server.endpoint)/"
    for round in 0..<4 {
      let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
        for number in 0..<(1 + random.below(12)) {
          let body = RequestBody.text("\(number)")
          group.addTask { try await client.execute(NetOptRequest(.post, url, body: body)).status }
        }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(statuses.allSatisfy { $0 == 200 })
      // One fetch for the first token, and one for each rejected one.
      #expect(fetches.rejected.withLock { $0 } == [nil] + (0..<round).map { "t\($0)" })
      record.valid.withLock { $0 = "t\(round + 1)" }
    }
    await client.shutdown()
  }

  @Test("a token that stays rejected leads to the 401, after two requests at most")
  func rejected() async throws {
    let lab = try TokenServer(valid: "good")
    defer { lab.server.stop() }
    let tokens = Tokens()
    let client = try Self.client(.bearer(hosts: ["127.0.0.1"]) { _ in tokens.next() })
    let url = "http://\(lab.server.endpoint)/"
    #expect(try await client.execute(NetOptRequest(.get, url)).status == 401)
    #expect(lab.seen == ["Bearer bad", "Bearer worse"])
    // A stream cannot be sent again.
    let stream = AsyncStream<[UInt8]> { $0.finish() }
    #expect(try await client.execute(NetOptRequest(.post, url, body: .stream(stream))).status == 401)
    #expect(lab.seen.count == 3)
    await client.shutdown()
  }

  @Test("a client that sends only streams gets a new token after a 401", .timeLimit(.minutes(1)))
  func rejectedStream() async throws {
    let lab = try TokenServer(valid: "good")
    defer { lab.server.stop() }
    let tokens = Locked(["expired", "good"])
    let client = try Self.client(.bearer(hosts: ["127.0.0.1"]) { _ in tokens.withLock { $0.removeFirst() } })
    var statuses: [Int] = []
    for _ in 0..<3 {
      let body = RequestBody.stream(AsyncStream<[UInt8]> { $0.finish() })
      let request = try NetOptRequest(.post, "http://\(lab.server.endpoint)/", body: body)
      statuses.append(try await client.execute(request).status)
    }
    #expect(statuses == [401, 200, 200])
    #expect(lab.seen == ["Bearer expired", "Bearer good", "Bearer good"])
    await client.shutdown()
  }

  @Test("credentials go to their hosts only, and only if the request has none")
  func scope() async throws {
    let other = try TokenServer(valid: "")
    defer { other.server.stop() }
    let lab = try TokenServer(
      valid: "t", redirects: ["/away": "http://localhost:\(other.server.endpoint.port)/", "/here": "/"])
    defer { lab.server.stop() }
    let back = try TokenServer(valid: "", redirects: ["/": "http://\(lab.server.endpoint)/"])
    defer { back.server.stop() }
    let client = try Self.client(
      .bearer("t", hosts: ["127.0.0.1"]), .basic(user: "u", password: "pä:", hosts: ["localhost.test"]))
    let base = "http://\(lab.server.endpoint)"
    #expect(try await client.execute(NetOptRequest(.get, base + "/here")).status == 200)
    _ = try await client.execute(NetOptRequest(.get, base + "/away"))
    #expect(other.seen == ["-"])
    var own = try NetOptRequest(.get, base + "/")
    own.headers["authorization"] = "Bearer own"
    #expect(try await client.execute(own).status == 401)
    #expect(
      lab.seen == ["Bearer t", "Bearer t", "Bearer t", "Bearer own"])
    // Another server does not choose a request that gets credentials.
    let handed = try await client.execute(
      NetOptRequest(.get, "http://localhost:\(back.server.endpoint.port)/"))
    #expect(handed.status == 307)
    #expect(lab.seen.count == 4)
    await client.shutdown()
  }

  @Test("without TLS or without verification, credentials are not sent by default")
  func plain() async throws {
    let lab = try TokenServer(valid: "t")
    defer { lab.server.stop() }
    var configuration = ClientConfiguration()
    configuration.proxy = .none
    configuration.authorization = [.bearer("t", hosts: ["127.0.0.1"])]
    let client = try NetOptClient(configuration)
    _ = try await client.execute(NetOptRequest(.get, "http://\(lab.server.endpoint)/"))
    #expect(lab.seen == ["-"])
    await client.shutdown()
    let address = IPAddress.loopback
    let transport = StubTransport([address: .respond()], resolver: StubResolver("127.0.0.1", [address]))
    let stub = try NetOptClient(configuration, transport: transport)
    for verification in [RequestOptions.Verification.none, .full] {
      var request = try NetOptRequest(.get, "https://127.0.0.1/")
      request.options.verification = verification
      _ = try await stub.execute(request)
    }
    #expect(transport.received.map { $0.request.headers["Authorization"] } == [nil, "Bearer t"])
    await stub.shutdown()
  }

  @Test("the value of Basic is that of RFC 7617, with a password in UTF-8")
  func basic() async throws {
    let address = IPAddress.loopback
    let transport = StubTransport(
      [address: .respond()], resolver: StubResolver("a.test", [address]))
    var configuration = ClientConfiguration()
    configuration.authorization = [.basic(user: "test", password: "123£", hosts: ["A.test"])]
    let client = try NetOptClient(configuration, transport: transport)
    _ = try await client.execute(NetOptRequest(.get, "https://a.test/"))
    // The example of section 2.1.
    #expect(transport.received.first?.request.headers["Authorization"] == "Basic dGVzdDoxMjPCow==")
    await client.shutdown()
  }

  @Test("a call ends with the error of the fetch, at its deadline and when it is cancelled")
  func failedFetches() async throws {
    let lab = try TokenServer(valid: "t")
    defer { lab.server.stop() }
    let url = "http://\(lab.server.endpoint)/"
    let failing = try Self.client(.bearer(hosts: ["127.0.0.1"]) { _ in throw Refused() })
    let error = await #expect(throws: NetOptError.self) {
      try await failing.execute(NetOptRequest(.get, url))
    }
    #expect(error?.code == .custom("token-unavailable") && error?.cause as? Refused == Refused())
    #expect(error?.code.description == "token-unavailable")
    await failing.shutdown()

    let latch = Latch()
    let hanging = try Self.client(
      .bearer(hosts: ["127.0.0.1"]) { _ in
        try await latch.wait()
        return "t"
      })
    var request = try NetOptRequest(.get, url)
    request.options.timeout = .milliseconds(50)
    let late = request
    let timeout = await #expect(throws: NetOptError.self) { try await hanging.execute(late) }
    #expect(timeout?.code == .timeout)
    let call = Task { try await hanging.execute(NetOptRequest(.get, url)).status }
    call.cancel()
    let cancelled = await #expect(throws: NetOptError.self) { try await call.value }
    #expect(cancelled?.code == .cancelled)
    // The fetch went on, and serves the next call.
    latch.open()
    #expect(try await hanging.execute(NetOptRequest(.get, url)).status == 200)
    await hanging.shutdown()
  }

  @Test("a shutdown ends the calls that wait for a token, and cancels the fetch")
  func shutdown() async throws {
    let began = Latch()
    let cancelled = Latch()
    let client = try Self.client(
      .bearer(hosts: ["127.0.0.1"]) { _ in
        began.open()
        do { try await Task.sleep(for: .seconds(3600)) } catch { cancelled.open() }
        return "t"
      })
    var request = try NetOptRequest(.get, "http://127.0.0.1:1/")
    request.options.timeout = nil
    let endless = request
    let calls = (0..<3).map { _ in Task { try await client.execute(endless).status } }
    try await began.wait()
    await client.shutdown(draining: .milliseconds(1))
    for call in calls {
      let error = await #expect(throws: NetOptError.self) { try await call.value }
      #expect(error?.code == .shutDown)
    }
    try await cancelled.wait()
  }

  @Test("a time limit that an interceptor sets ends the wait for a token")
  func changedLimit() async throws {
    struct Shortening: Interceptor {
      func intercept(_ request: NetOptRequest, next: InterceptorChain) async throws(NetOptError)
        -> NetOptResponse
      {
        var request = request
        request.options.timeout = .milliseconds(20)
        return try await next.proceed(request)
      }
    }
    var configuration = ClientConfiguration()
    configuration.interceptors = [Shortening()]
    configuration.authorization = [
      .bearer(hosts: ["a.test"]) { _ in
        try await Task.sleep(for: .seconds(3600))
        return "t"
      }
    ]
    let client = try NetOptClient(configuration, transport: StubTransport())
    let error = await #expect(throws: NetOptError.self) {
      try await client.execute(NetOptRequest(.get, "https://a.test/"))
    }
    #expect(error?.code == .timeout && error?.message.contains("fetched a token") == true)
    await client.shutdown()
  }

  @Test("a token that cannot be sent is not kept, and not printed", arguments: ["", "geheim\n", "a\r\nb: c"])
  func unusableToken(_ token: String) async throws {
    let lab = try TokenServer(valid: "good")
    defer { lab.server.stop() }
    let fetches = Fetches()
    let client = try Self.client(
      .bearer(hosts: ["127.0.0.1"]) { rejected in
        fetches.rejected.withLock { $0.append(rejected) }
        return fetches.rejected.withLock { $0.count } == 1 ? token : "good"
      })
    let request = try NetOptRequest(.get, "http://\(lab.server.endpoint)/")
    let error = await #expect(throws: NetOptError.self) { try await client.execute(request) }
    #expect(error?.code == .custom("token-unavailable") && error?.message.contains("geheim") == false)
    #expect(try await client.execute(request).status == 200)
    await client.shutdown()
  }

  @Test(
    "the body of a 401 does not keep the connection that the second request needs", .timeLimit(.minutes(1)))
  func largeRefusal() async throws {
    let server = try LoopbackServer(
      .raw { exchange in
        let isValid = exchange.request.fields["Authorization"] == "Bearer t1"
        try exchange.respond(isValid ? 200 : 401, body: [UInt8](repeating: 0, count: isValid ? 1 : 8 << 20))
      })
    defer { server.stop() }
    var configuration = ClientConfiguration()
    configuration.proxy = .none
    configuration.connections.perEndpoint = 1
    var setting = ClientConfiguration.Authorization.bearer(hosts: ["127.0.0.1"]) { $0 == nil ? "t0" : "t1" }
    setting.allowsUnprotected = true
    configuration.authorization = [setting]
    let client = try NetOptClient(configuration)
    #expect(try await client.execute(NetOptRequest(.get, "http://\(server.endpoint)/")).status == 200)
    await client.shutdown()
  }

  @Test("a dump of the client shows no credentials")
  func dumpedClient() throws {
    let client = try Self.client(
      .bearer("geheim", hosts: ["a.test"]), .basic(user: "u", password: "geheim", hosts: ["b.test"]))
    var dumped = ""
    dump(client, to: &dumped)
    #expect(!dumped.contains("geheim") && !dumped.contains("Basic "))
  }

  @Test("settings that would add nothing, or break requests, are refused without printing the secret")
  func refusedSettings() {
    let settings: [ClientConfiguration.Authorization] = [
      .bearer("geheim", hosts: []), .bearer("geheim", hosts: ["a.test:443"]),
      .bearer("geheim", hosts: ["https://a.test"]), .bearer("geheim\r\nX: y", hosts: ["a.test"]),
      .basic(user: "a:b", password: "geheim", hosts: ["a.test"]),
    ]
    for setting in settings {
      var configuration = ClientConfiguration()
      configuration.authorization = [setting]
      let error = #expect(throws: NetOptError.self) {
        try NetOptClient(configuration, transport: StubTransport())
      }
      #expect(error?.code == .invalidConfiguration)
      #expect(error?.message.contains("geheim") == false)
      var dumped = ""
      dump(setting, to: &dumped)
      #expect(!"\(setting)\(dumped)".contains("geheim"))
    }
  }

  /// Throws an error of the program's own.
  private struct Failing: Interceptor {
    func intercept(_ request: NetOptRequest, next: InterceptorChain) async throws(NetOptError)
      -> NetOptResponse
    {
      throw .custom("quota", underlying: Refused())
    }
  }

  @Test("an interceptor's own error reaches the caller, and its code is none of netopt's")
  func customErrors() async throws {
    var configuration = ClientConfiguration()
    configuration.interceptors = [Failing()]
    let client = try NetOptClient(configuration, transport: StubTransport())
    let error = await #expect(throws: NetOptError.self) {
      try await client.execute(NetOptRequest(.get, "https://a.test/"))
    }
    #expect(error?.code == .custom("quota") && error?.cause as? Refused == Refused())
    #expect(error?.message == "quota: Refused" && error?.isRetryable == false)
    #expect(NetOptError.Code.custom("timeout") != .timeout)
    await client.shutdown()
  }
}
