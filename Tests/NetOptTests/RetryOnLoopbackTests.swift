import Glibc
import NetOpt
import NetOptCore
import NetOptLocking
import NetOptRouting
import NetOptTestSupport
import TestTools
import Testing

/// Retries on real servers: the guarantees that hold when endpoints die.
@Suite struct RetryOnLoopbackTests {
  /// The outcome of a call. Only `error` and `time` are set after a failure.
  private struct Call: Sendable {
    var error: NetOptError?
    /// The time from the start of the call to the end of the response's body, or to the failure.
    var time: Duration
    /// The address that answered.
    var remote: IPAddress?
    /// The addresses of all legs of the call, in all attempts.
    var addresses: Set<IPAddress> = []
  }

  /// Performs a call and reads the body of its response.
  private func call(_ client: NetOptClient, _ request: NetOptRequest) async -> Call {
    let clock = SystemTimeSource()
    let start = clock.now()
    do throws(NetOptError) {
      let response = try await client.execute(request)
      _ = try await response.body.collect(upTo: 1 << 20)
      let routes = [response.route] + response.otherAttempts.compactMap(\.route)
      return Call(
        time: clock.now() - start, remote: response.remote?.address,
        addresses: Set(routes.flatMap { $0.legs.compactMap(\.address) }))
    } catch {
      return Call(error: error, time: clock.now() - start)
    }
  }

  /// Chooses the server that a test kills while calls run: the server that answered last. The server that
  /// answered the first call may be idle by then, because probes can change the ranking after the first call.
  private final class Victim: Sendable {
    private struct State {
      /// The number of calls that have started.
      var started = 0
      /// The server that answered last.
      var lastUsed: IPAddress?
      var address: IPAddress?
    }

    private let state = Locked(State())

    /// The chosen server; `nil` before the choice.
    var address: IPAddress? { state.withLock(\.address) }

    /// Counts a call that starts.
    ///
    /// - Returns: the server to kill before this call, if the call has the given number.
    func start(killingBefore number: Int) -> IPAddress? {
      state.withLock { state in
        state.started += 1
        guard state.started == number else { return nil }
        state.address = state.lastUsed
        return state.address
      }
    }

    /// Notes which server answered.
    func answered(_ remote: IPAddress?) {
      if let remote { state.withLock { $0.lastUsed = remote } }
    }
  }

  /// A call is slow when it waited for the dead endpoint for the stagger: the time that the race gives a leg
  /// before it starts another leg beside it. This time is 250 ms as long as nothing is known of the endpoint,
  /// and shorter later. A call that tried the dead endpoint and went elsewhere at once is not slow.
  @Test("an endpoint that is killed under load fails no request and slows at most two")
  func killedEndpoint() async throws {
    let fleet = try await Fleet(3)
    defer { fleet.stop() }
    let client = try await fleet.client()
    _ = try await client.execute(try fleet.request()).body.collect(upTo: 100)
    let request = try fleet.request(.get, "/bytes/10000")
    let victim = Victim()
    let calls = await withTaskGroup(of: [Call].self) { group in
      for _ in 0..<20 {
        group.addTask {
          var calls: [Call] = []
          for _ in 0..<50 {
            // SIGKILL, with requests of all other tasks under way.
            if let address = victim.start(killingBefore: 400) { try? fleet.origin(address).kill() }
            let call = await call(client, request)
            victim.answered(call.remote)
            calls.append(call)
          }
          return calls
        }
      }
      return await group.reduce(into: []) { $0 += $1 }
    }
    #expect(calls.count == 1000)
    let dead = try #require(victim.address)
    let failed = calls.compactMap(\.error)
    #expect(failed.isEmpty, "\(failed.first.map { "\($0)" } ?? "")")
    let slow = calls.filter { $0.addresses.contains(dead) && $0.time >= .milliseconds(250) }
    #expect(slow.count <= 2, "\(slow.map(\.time))")
    #expect(calls.contains { $0.remote == dead })
    #expect(calls.contains { $0.remote != dead && $0.remote != nil })
    await client.shutdown()
  }

  /// When the circuit breakers of all listed endpoints are open, a plan begins with one of these endpoints,
  /// and DNS starts at the same time. A half-open endpoint comes before DNS in a plan. So requests reach the
  /// endpoint again soon after it has come back.
  @Test("the client uses an endpoint that comes back within one half-open period")
  func returningEndpoint() async throws {
    let fleet = try await Fleet(2)
    defer { fleet.stop() }
    let (listed, other) = (fleet.addresses[0], fleet.addresses[1])
    let dns = try await DNSServer.start([Lab.host: [other]])
    defer { dns.stop() }
    let client = try await fleet.client(listed: 1, dns: dns)
    let request = try fleet.request()
    #expect(await call(client, request).remote == listed)
    try fleet.origin(listed).kill()
    // Waits until the circuit breaker is open, which the route's `fallback` shows.
    try await wait(for: "the circuit to open") {
      let response = try await client.execute(request)
      #expect(response.remote?.address == other)
      return response.route.fallback == .circuitsOpen
    }
    let clock = SystemTimeSource()
    let opened = clock.now()
    try await fleet.start(listed)
    try await wait(for: "the endpoint to be used again", within: .seconds(20)) {
      let call = await call(client, request)
      #expect(call.error == nil)
      return call.remote == listed
    }
    // The first open time is 5 s, and jitter makes it longer by at most a fifth. The rest allows for a slow
    // machine.
    #expect(clock.now() - opened < .seconds(8))
    await client.shutdown()
  }

  /// The server passes the request on to another server behind it (`behind`). It is killed before it has the
  /// response.
  @Test(
    "a GET in flight on a killed server is retried elsewhere, and a POST fails",
    arguments: [NetOptRequest.Method.get, .post])
  func killedDuringRequest(_ method: NetOptRequest.Method)
    async throws
  {
    // Requests on the first connection get no response. Requests on all other connections get status 200.
    let behind = try LoopbackServer(
      .raw { exchange in
        _ = try exchange.readBody()
        if exchange.request.connection == 1 { try exchange.waitForClose() } else { try exchange.respond(200) }
      })
    defer { behind.stop() }
    let held = "proxy_set_header X-Held-By $server_addr; proxy_pass http://\(behind.endpoint);"
    let fleet = try await Fleet(2, directives: "location = /held { \(held) }")
    defer { fleet.stop() }
    let client = try await fleet.client()
    _ = try await client.execute(try fleet.request()).body.collect(upTo: 100)
    var request = try fleet.request(method, "/held")
    if method == .post { request.body = .text("once") }
    let sent = request
    let call = Task { try await client.execute(sent) }
    try await wait(for: "the request to arrive") { behind.requests.count == 1 }
    // Either server may have the request. The probe of the other endpoint may have ended after the first call
    // and changed the ranking.
    let holder = try #require(behind.requests.first?.fields["X-Held-By"])
    let dead = try #require(IPAddress(holder))
    try fleet.origin(dead).kill()
    if method == .get {
      let response = try await call.value
      #expect(response.status == 200)
      #expect(response.remote?.address != dead)
      #expect(response.otherAttempts.map { $0.remote?.address } == [dead])
    } else {
      let error = await #expect(throws: NetOptError.self) { _ = try await call.value }
      #expect(error?.code == .sendFailed)
      #expect(error?.isRetryable == false)
      #expect(error?.message.contains("whether the request took effect is not known") == true)
      #expect(error?.otherAttempts.isEmpty == true)
    }
    await client.shutdown()
    #expect(behind.requests.count == (method == .get ? 2 : 1))
    for address in fleet.addresses where address != dead {
      let other = try fleet.origin(address)
      other.stop()
      #expect(try other.accessLog().count { $0.target == "/held" } == (method == .get ? 1 : 0))
    }
  }

  /// The server resets the connection after it received the request, on new and on pooled connections.
  @Test("a POST that is reset after the server received it is not retried, and a GET is")
  func resetPost() async throws {
    let addresses = IPAddress.freshLoopback(2)
    let port = try FreePort.find(on: addresses)
    let servers = try addresses.map { address in
      try LoopbackServer(
        .raw { exchange in
          _ = try exchange.readBody()
          if exchange.request.target == "/fine" { try exchange.respond(200) } else { exchange.reset() }
        }, on: address, port: port)
    }
    defer { for server in servers { server.stop() } }
    var configuration = ClientConfiguration()
    configuration.probing.atStart = false
    configuration.proxy = .none
    configuration.rankingHistory = .none
    configuration.list = .list(
      EndpointList(hosts: [
        "plain.test": HostEntry(port: port, endpoints: addresses.map { ListedEndpoint($0) })
      ]))
    let client = try NetOptClient(configuration)
    for isPooled in [false, true] {
      if isPooled {
        _ = try await client.execute(try NetOptRequest(.get, "http://plain.test:\(port)/fine"))
          .body.collect(upTo: 1)
      }
      let post = try NetOptRequest(.post, "http://plain.test:\(port)/\(isPooled)", body: .text("once"))
      let error = await #expect(throws: NetOptError.self) { _ = try await client.execute(post) }
      #expect(error?.code == .sendFailed)
      #expect(error?.message.contains("whether the request took effect is not known") == true)
      let received = servers.flatMap(\.requests).filter { $0.target == "/\(isPooled)" }
      #expect(received.map(\.method) == [.post])
    }
    // The client retries the GET at the other server. The error reports the attempts before the last one.
    let get = try NetOptRequest(.get, "http://plain.test:\(port)/get")
    let error = await #expect(throws: NetOptError.self) { _ = try await client.execute(get) }
    #expect(error?.otherAttempts.count == 2)
    for server in servers { #expect(server.requests.contains { $0.target == "/get" }) }
    await client.shutdown()
  }

  @Test(
    "a retry after 502, 503 or 504 reuses connections, and a POST is not retried",
    arguments: [502, 503, 504])
  func retriedStatus(_ status: Int) async throws {
    let fleet = try await Fleet(2, directives: "location = /busy { return \(status) \"busy\\n\"; }")
    defer { fleet.stop() }
    let client = try await fleet.client()
    let response = try await client.execute(try fleet.request(.get, "/busy"))
    #expect(response.status == status && response.attempts == 3)
    #expect(try await response.body.collect(upTo: 10) == Array("busy\n".utf8))
    #expect(Set(response.otherAttempts.compactMap { $0.remote?.address }).count == 2)
    let next = try await client.execute(try fleet.request())
    #expect(next.reused)
    let post = try await client.execute(try fleet.request(.post, "/busy"))
    #expect(post.status == status && post.attempts == 1)
    await client.shutdown()
    var entries: [AccessLogEntry] = []
    for address in fleet.addresses {
      let origin = try fleet.origin(address)
      origin.stop()
      entries += try origin.accessLog()
    }
    #expect(entries.count { $0.target == "/busy" && $0.method == "GET" } == 3)
    #expect(entries.count { $0.target == "/busy" && $0.method == "POST" } == 1)
    #expect(Set(entries.map { "\($0.serverAddress) \($0.connection)" }).count <= 2)
  }

  @Test("a retry cancels the endless body of a 503 and reuses its connection")
  func endlessBody() async throws {
    // The response has a status that is retried. Its body takes 30 s, which is longer than the test takes.
    let endless = """
      location = /endless { echo_status 503; echo first; echo_flush; echo_sleep 30; echo last; }
      """
    let fleet = try await Fleet(1, directives: endless)
    defer { fleet.stop() }
    let client = try await fleet.client()
    let clock = SystemTimeSource()
    let start = clock.now()
    var request = try fleet.request(.get, "/endless")
    request.options.maxAttempts = 2
    let response = try await client.execute(request)
    #expect(response.status == 503 && response.attempts == 2)
    #expect(clock.now() - start < .seconds(5))
    #expect(response.reused)
    let next = try await client.execute(try fleet.request())
    #expect(next.reused)
    await client.shutdown()
  }

  @Test("a retry waits for Retry-After unless the wait is too long or passes the deadline")
  func retryAfter() async throws {
    let fleet = try await Fleet(
      1,
      directives: """
        location = /soon { add_header Retry-After 1 always; return 503; }
        location = /late { add_header Retry-After 3600 always; return 503; }
        """)
    defer { fleet.stop() }
    let client = try await fleet.client()
    let clock = SystemTimeSource()
    let start = clock.now()
    var soon = try fleet.request(.get, "/soon")
    soon.options.maxAttempts = 2
    #expect(try await client.execute(soon).attempts == 2)
    #expect(clock.now() - start >= .seconds(1))
    let late = try await client.execute(try fleet.request(.get, "/late"))
    #expect(late.status == 503 && late.attempts == 1)
    soon.options.timeout = .milliseconds(900)
    let inTime = try await client.execute(soon)
    #expect(inTime.status == 503 && inTime.attempts == 1)
    await client.shutdown()
  }

  @Test("a GET that gets 421 is retried once over a fresh connection, and a POST is not")
  func misdirected() async throws {
    let fleet = try await Fleet(1, directives: "location = /misdirected { return 421; }")
    defer { fleet.stop() }
    let client = try await fleet.client()
    let response = try await client.execute(try fleet.request(.get, "/misdirected"))
    #expect(response.status == 421 && response.attempts == 2 && !response.reused)
    let post = try await client.execute(try fleet.request(.post, "/misdirected"))
    #expect(post.attempts == 1)
    await client.shutdown()
    let origin = try fleet.origin(fleet.addresses[0])
    let entries = try await origin.waitForLog(3)
    #expect(entries.map(\.method) == ["GET", "GET", "POST"])
    #expect(entries[0].connection != entries[1].connection)
    // The pool still holds the first connection.
    #expect(entries[2].connection == entries[0].connection)
  }

  @Test("retries in a total outage stay within 20 % of the calls plus 10 a second")
  func totalOutage() async throws {
    let fleet = try await Fleet(2, directives: "location = /busy { return 503; }")
    defer { fleet.stop() }
    let client = try await fleet.client()
    let request = try fleet.request(.get, "/busy")
    let clock = SystemTimeSource()
    let start = clock.now()
    let calls = 1000
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<20 {
        group.addTask {
          for _ in 0..<(calls / 20) { _ = try? await client.execute(request).body.collect(upTo: 1000) }
        }
      }
    }
    let seconds = Double((clock.now() - start).nanoseconds) / 1e9
    await client.shutdown()
    var received = 0
    for address in fleet.addresses {
      let origin = try fleet.origin(address)
      origin.stop()
      received += try origin.accessLog().count { $0.target == "/busy" }
    }
    #expect(received > calls)
    #expect(Double(received) <= Double(calls) * 1.2 + 10 * (seconds + 1), "\(received) in \(seconds) s")
  }

  /// A plan has one leg for DNS, and none for the addresses that DNS returns. A retry still tries the address
  /// of the failed attempt last.
  @Test("a retry over DNS addresses goes to another address than the failed attempt")
  func retryOverDNS() async throws {
    let fleet = try await Fleet(2)
    defer { fleet.stop() }
    let dns = try await DNSServer.start([Lab.host: fleet.addresses])
    defer { dns.stop() }
    let client = try await fleet.client(listed: 0, dns: dns) { $0.list = .none }
    let first = try await client.execute(try fleet.request())
    let used = try #require(first.remote?.address)
    _ = try await first.body.collect(upTo: 100)
    var request = try fleet.request(.get, "/status/503")
    request.options.maxAttempts = 2
    let response = try await client.execute(request)
    #expect(response.otherAttempts.map { $0.remote?.address } == [used])
    #expect(response.remote?.address != used)
    await client.shutdown()
  }

  /// The first server is frozen: its connections stay open, and it answers nothing. The client sends a hedge
  /// to the other server.
  @Test("a hedge on another server overtakes a server that stops answering")
  func hedgeOvertakes() async throws {
    let fleet = try await Fleet(2)
    defer { fleet.stop() }
    let client = try await fleet.client()
    var request = try fleet.request()
    request.options.hedges = true
    // The endpoint that got the first copy of the last request. It may differ from the endpoint of the first
    // request, because the ranking may change.
    var used: IPAddress?
    for _ in 0..<(LatencyQuantile.leastSamples + 10) {
      let response = try await client.execute(request)
      let first = response.otherAttempts.first { $0.number == 1 }
      used = (first?.remote ?? response.remote)?.address
      _ = try await response.body.collect(upTo: 100)
    }
    let frozen = try #require(used)
    let origin = try fleet.origin(frozen)
    origin.freeze()
    defer { origin.thaw() }
    let response = try await client.execute(request)
    #expect(response.status == 200)
    #expect(response.remote?.address != frozen)
    #expect(response.otherAttempts.map { $0.remote?.address } == [frozen])
    if case .overtaken = response.otherAttempts[0].outcome {} else { Issue.record("not overtaken") }
    await client.shutdown()
  }
}
