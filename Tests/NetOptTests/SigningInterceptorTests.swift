import NetOptCore
import NetOptCrypto
import NetOptLocking
import NetOptSigning
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOpt

@Suite struct SigningInterceptorTests {
  /// The end of a chain of interceptors: a server that verifies signatures. Its responses to valid requests
  /// have status 200.
  private final class Server: Interceptor {
    /// The clock with which the server verifies signatures, in seconds since 1970. It stands still.
    let clock: Int64
    /// Whether the responses came over TLS, with a verified certificate.
    let isTLS: Bool
    /// The `Age` of the responses; `nil` for none.
    let age: String?
    /// The status of the responses to requests without a valid signature.
    let refusal: Int
    private let verifier: SignatureVerifier
    private let seen = Locked<[(NetOptRequest, VerificationReport)]>([])
    var requests: [NetOptRequest] { seen.withLock { $0.map(\.0) } }
    /// The results of the verification of these requests.
    var reports: [VerificationReport] { seen.withLock { $0.map(\.1) } }

    init(clock: Int64, isTLS: Bool = true, age: String? = nil, refusal: Int = 401) {
      self.refusal = refusal
      self.age = age
      self.clock = clock
      self.isTLS = isTLS
      verifier = SignatureVerifier(keys: SigningInterceptorTests.ring, nonces: MemoryNonceStore())
    }

    /// Reads a body from memory or from a file.
    private static func content(of body: RequestBody) async throws(NetOptError) -> [UInt8] {
      guard case .stream(_, _, let makeIterator) = body.source else {
        return if case .bytes(let bytes) = body.source { bytes } else { [] }
      }
      var bytes: [UInt8] = []
      var chunks = makeIterator(.sending)
      do {
        while let chunk = try await chunks.next() { bytes += chunk }
      } catch {
        throw error as? NetOptError ?? NetOptError(.sendFailed, phase: .send, "\(error)")
      }
      return bytes
    }

    func intercept(_ request: NetOptRequest, next: InterceptorChain) async throws(NetOptError)
      -> NetOptResponse
    {
      let body = try await Self.content(of: request.body)
      let report = verifier.verify(SigningRequest(request, body: body), .init(now: clock))
      seen.withLock { $0.append((request, report)) }
      let plan = RoutePlan(
        origin: request.url.origin, policy: .fastest, legs: [RoutePlan.Leg(.dns, source: .dns)])
      var fields: HeaderFields = ["Date": "Tue, 14 Nov 2023 22:13:20 GMT"]
      fields["Age"] = age
      return NetOptResponse(
        url: request.url,
        head: ResponseHead(status: report.isValid ? 200 : refusal, fields: fields),
        body: ResponseBody([]), route: RouteReport(plan: plan, legs: []),
        tls: isTLS ? TLSReport(verified: true) : nil)
    }
  }

  /// Holds requests back until `count` requests wait, and then lets all of them pass.
  private final class Gate: Interceptor {
    private let count: Int
    private let waiting = Locked<[CheckedContinuation<Void, Never>]>([])

    init(count: Int) { self.count = count }

    func intercept(_ request: NetOptRequest, next: InterceptorChain) async throws(NetOptError)
      -> NetOptResponse
    {
      await withCheckedContinuation { continuation in
        let all = waiting.withLock { waiting -> [CheckedContinuation<Void, Never>] in
          waiting.append(continuation)
          guard waiting.count >= count else { return [] }
          defer { waiting = [] }
          return waiting
        }
        for waiting in all { waiting.resume() }
      }
      return try await next.proceed(request)
    }
  }

  /// The `Date` of the servers' responses, in seconds since 1970.
  private static let date: Int64 = 1_700_000_000
  /// The keys of the signer and of the server.
  private static let ring = KeyRing([SigningKey(id: "k", secret: Array("secret".utf8), salt: "s")])

  /// A chain that signs requests to api.example.com and sends them to the server.
  ///
  /// - Parameter clock: the clock of the signer, in seconds since 1970. It stands still.
  private func chain(_ server: Server, clock: Int64) throws -> InterceptorChain {
    let signer = try RequestSigner(keys: Self.ring, keyID: "k")
    let signing = SigningInterceptor(.init(signer: signer, hosts: ["api.example.com"])) { clock }
    return InterceptorChain(
      [signing, server], context: CallContext(id: 1, started: .init(nanoseconds: 0), deadline: nil))
  }

  @Test("a call waits for a key's secret command until its deadline, and later calls get the secret")
  func deadlineOfACommand() async throws {
    let text =
      #"{"schema":1,"keys":[{"id":"k","salt":"s","secret_command":"sleep 1; printf secret","schemes":["netopt1"]}]}"#
    let ring = try KeyRing(json: SecretBytes(copying: Array(text.utf8)))
    let signing = ClientConfiguration.Signing(
      signer: try RequestSigner(keys: ring, keyID: "k"), hosts: ["api.example.com"])
    let server = Server(clock: Self.date)
    let timeSource = SystemTimeSource()
    /// Performs a call. Returns the status of the response.
    ///
    /// - Parameter limit: the time until the deadline of the call; `nil` for no deadline.
    func call(within limit: Duration?) async throws -> Int {
      let now = timeSource.now()
      return try await InterceptorChain(
        [
          SecretInterceptor(hosts: signing.hosts, commands: SecretCommands(signing.signer, timeSource)),
          SigningInterceptor(signing) { Self.date }, server,
        ], context: CallContext(id: 1, started: now, deadline: limit.map { now + $0 })
      ).proceed(try NetOptRequest(.get, "https://api.example.com/")).status
    }
    let error = await #expect(throws: NetOptError.self) { try await call(within: .milliseconds(50)) }
    #expect(error?.code == .timeout && error?.phase == .sign, "\(error?.message ?? "")")
    #expect(server.requests.isEmpty)
    let cancelled = Task { try await call(within: nil) }
    cancelled.cancel()
    let cancellation = await #expect(throws: NetOptError.self) { try await cancelled.value }
    #expect(cancellation?.code == .cancelled)
    async let first = call(within: .seconds(30))
    async let second = call(within: nil)
    #expect(try await [first, second] == [200, 200])
    #expect(server.reports.allSatisfy { $0.isValid })
  }

  @Test("each attempt gets a new signature")
  func freshSignatures() async throws {
    let server = Server(clock: Self.date)
    let chain = try chain(server, clock: Self.date)
    let request = try NetOptRequest(
      .post, "https://api.example.com/a?b=c d".replacing(" ", with: "%20"), body: .text("x"))
    #expect(try await chain.proceed(request).status == 200)
    #expect(try await chain.proceed(request).status == 200)
    let fields = server.requests.map { $0.headers["Authorization"] }
    #expect(fields.count == 2 && fields[0] != fields[1] && fields[0] != nil)
  }

  @Test("a request to a host outside the signed hosts is not signed")
  func otherHosts() async throws {
    let server = Server(clock: Self.date)
    let chain = try chain(server, clock: Self.date)
    _ = try await chain.proceed(try NetOptRequest(.get, "https://other.example.com/"))
    #expect(server.requests[0].headers["Authorization"] == nil)
  }

  @Test("the case of a signed host does not matter, and a text that is no host name is refused")
  func signedHosts() async throws {
    let signer = try RequestSigner(keys: Self.ring, keyID: "k")
    func client(_ hosts: Set<String>) throws -> NetOptClient {
      var configuration = ClientConfiguration()
      configuration.proxy = .none
      configuration.signing = ClientConfiguration.Signing(signer: signer, hosts: hosts)
      return try NetOptClient(configuration)
    }
    for (hosts, words) in [
      (["api.example.com:443"], "has \"api.example.com:443\", which is no host name"),
      (["https://api.example.com/"], "which is no host name"), ([""], "which is no host name"),
      ([], "signing.hosts is empty"),
    ] as [(Set<String>, String)] {
      let error = #expect(throws: NetOptError.self) { try client(hosts) }
      #expect(error?.code == .invalidConfiguration && error?.message.contains(words) == true)
    }
    let server = try LoopbackServer(.raw { try $0.respond(200) })
    defer { server.stop() }
    for (host, isSigned) in [("API.Example.com.", true), ("other.example.com", false)] {
      let client = try client([host])
      var request = try NetOptRequest(.get, "http://api.example.com:\(server.endpoint.port)/")
      request.options.routing = .pinned(server.endpoint.address)
      _ = try await client.execute(request)
      #expect((server.requests.last?.fields["Authorization"] != nil) == isSigned)
      await client.shutdown()
    }
  }

  @Test("the signer learns the server's clock from one refusal and keeps it")
  func learntClock() async throws {
    let server = Server(clock: Self.date)
    let chain = try chain(server, clock: Self.date - 4000)
    let request = try NetOptRequest(.post, "https://api.example.com/", body: .text("x"))
    #expect(try await chain.proceed(request).status == 200)
    #expect(server.reports.map(\.reason) == [.tooOld, .ok])
    #expect(try await chain.proceed(request).status == 200)
    #expect(server.requests.count == 3)
  }

  /// A 400 may have another reason than the signature, so the server may have carried out the request. The
  /// client then repeats only an idempotent request. In every case it learns the difference of the clocks, so
  /// that the next request is valid.
  ///
  /// - Parameters:
  ///   - hasKey: whether the request has an `Idempotency-Key`.
  ///   - sent: how many requests the first call sends.
  @Test(
    "after a 400 only an idempotent request is signed and sent again, after a 403 any request",
    arguments: [(400, false, 1), (400, true, 2), (403, false, 2)])
  func badRequest(_ status: Int, _ hasKey: Bool, _ sent: Int) async throws {
    let server = Server(clock: Self.date, refusal: status)
    let chain = try chain(server, clock: Self.date - 4000)
    var request = try NetOptRequest(.post, "https://api.example.com/", body: .text("x"))
    if hasKey { request.headers["Idempotency-Key"] = "1" }
    #expect(try await chain.proceed(request).status == (sent == 1 ? status : 200))
    #expect(server.requests.count == sent)
    #expect(try await chain.proceed(request).status == 200)
    #expect(server.requests.count == sent + 1)
  }

  @Test("a refusal that the clock does not explain is handed back after one more attempt")
  func unexplainedRefusal() async throws {
    // The clock with which the server verifies differs from its `Date`. So another signature does not help.
    // The client tries one, because the `Date` differs from its own clock.
    let server = Server(clock: Self.date + 9000)
    let chain = try chain(server, clock: Self.date - 4000)
    #expect(try await chain.proceed(try NetOptRequest(.get, "https://api.example.com/")).status == 401)
    #expect(server.requests.count == 2)
    #expect(try await chain.proceed(try NetOptRequest(.get, "https://api.example.com/")).status == 401)
    // The second call is sent only once, because it already used the time of the server's `Date`.
    #expect(server.requests.count == 3)
  }

  @Test("the signer does not learn a clock that is more than a day off or comes without TLS")
  func untrustedClock() async throws {
    let far = Server(clock: Self.date)
    #expect(
      try await chain(far, clock: Self.date - 90_000).proceed(
        try NetOptRequest(.get, "https://api.example.com/")
      ).status == 401)
    #expect(far.requests.count == 1)
    let plain = Server(clock: Self.date, isTLS: false)
    #expect(
      try await chain(plain, clock: Self.date - 4000).proceed(
        try NetOptRequest(.get, "http://api.example.com/")
      ).status == 401)
    #expect(plain.requests.count == 1)
  }

  /// The client repeats every request that was signed with the wrong time, also the requests that were in
  /// flight when it learned the difference of the clocks.
  @Test("all concurrent requests that were signed with the wrong time are repeated")
  func concurrentRefusals() async throws {
    let count = 10
    let server = Server(clock: Self.date)
    let signer = try RequestSigner(keys: Self.ring, keyID: "k")
    let signing = SigningInterceptor(.init(signer: signer, hosts: ["api.example.com"])) { Self.date - 4000 }
    let chain = InterceptorChain(
      [signing, Gate(count: count), server],
      context: CallContext(id: 1, started: .init(nanoseconds: 0), deadline: nil))
    let statuses = try await withThrowingTaskGroup { group in
      for _ in 0..<count {
        group.addTask { try await chain.proceed(try NetOptRequest(.get, "https://api.example.com/")).status }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(statuses == Array(repeating: 200, count: count))
    #expect(server.requests.count == 2 * count)
  }

  @Test("the signer does not learn a clock from a response with an Age field")
  func cachedDate() async throws {
    for age in ["0", "4000", "x"] {
      let server = Server(clock: Self.date, age: age)
      let chain = try chain(server, clock: Self.date - 4000)
      #expect(try await chain.proceed(try NetOptRequest(.get, "https://api.example.com/")).status == 401)
      #expect(server.requests.count == 1)
    }
  }

  @Test("the signer learns a clock for each origin separately")
  func clockOfOrigin() async throws {
    let server = Server(clock: Self.date)
    let chain = try chain(server, clock: Self.date - 4000)
    // How many requests the server has received after a request to each URL. The first request to an origin
    // is sent twice.
    for (url, count) in [
      ("https://api.example.com/", 2), ("https://api.example.com:8443/", 4),
      ("https://api.example.com:8443/", 5),
      ("https://api.example.com/", 6),
    ] {
      #expect(try await chain.proceed(try NetOptRequest(.get, url)).status == 200)
      #expect(server.requests.count == count)
    }
  }

  @Test("a file has a valid signature of its bytes, also after a correction of the clock")
  func files() async throws {
    let path = try TemporaryDirectory.make("signed") + "/body"
    try TextFile.write((0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }, to: path)
    for offset: Int64 in [0, 4000] {
      let server = Server(clock: Self.date)
      let reports = Locked<[Int64]>([])
      let body = try RequestBody.file(path).reportingProgress { sent, _ in
        reports.withLock { $0.append(sent) }
      }
      let request = try NetOptRequest(.put, "https://api.example.com/", body: body)
      #expect(try await chain(server, clock: Self.date - offset).proceed(request).status == 200)
      #expect(server.requests.count == (offset == 0 ? 1 : 2))
      // The body is read once more to sign it, which is no progress.
      #expect(reports.withLock { $0.count { $0 == 300_000 } } == server.requests.count)
    }
  }

  /// A body that can be read again and never gives a chunk, like a file on a disk that hangs.
  private struct HangingBody: AsyncIteratorProtocol {
    let began: Latch
    func next() async throws -> [UInt8]? {
      began.open()
      // Cancellation does not end the wait, as it does not end read(2).
      await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
      return nil
    }
    mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> [UInt8]? {
      try await next()
    }
  }

  @Test(
    "the wait for a file to sign ends at the deadline, by cancellation and by a shutdown",
    .timeLimit(.minutes(1)), arguments: ["timeout", "cancelled", "shut-down"])
  func hangingFile(_ end: String) async throws {
    let began = Latch()
    var configuration = ClientConfiguration()
    configuration.signing = .init(
      signer: try RequestSigner(keys: Self.ring, keyID: "k"), hosts: ["api.example.com"])
    let address = IPAddress.loopback
    let client = try NetOptClient(
      configuration,
      transport: StubTransport([address: .respond()], resolver: StubResolver("api.example.com", [address])))
    var request = try NetOptRequest(
      .put, "https://api.example.com/",
      body: RequestBody(source: .stream(length: 5, isRepeatable: true) { _ in HangingBody(began: began) }))
    request.options.timeout = end == "timeout" ? .milliseconds(50) : nil
    let signed = request
    let call = Task { try await client.execute(signed).status }
    try await began.wait()
    if end == "cancelled" { call.cancel() }
    if end == "shut-down" { await client.shutdown() }
    let error = await #expect(throws: NetOptError.self) { try await call.value }
    #expect(error?.code.description == end)
    await client.shutdown()
  }

  @Test func aStreamCannotBeSigned() async throws {
    let server = Server(clock: Self.date)
    let stream = AsyncStream<[UInt8]> { $0.finish() }
    let request = try NetOptRequest(.post, "https://api.example.com/", body: .stream(stream))
    await #expect(throws: NetOptError.self) { try await chain(server, clock: Self.date).proceed(request) }
    #expect(server.requests.isEmpty)
  }
}
