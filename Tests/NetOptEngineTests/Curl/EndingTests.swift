import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// Exchanges that end early or with an error.
@Suite struct EndingTests {
  /// Starts a server that calls the handler for each request.
  private func server(_ handler: @escaping @Sendable (LoopbackExchange) throws -> Void) throws
    -> LoopbackServer
  {
    try LoopbackServer(.raw(handler), on: IPAddress.freshLoopback(1)[0])
  }

  /// Returns a request to a server.
  ///
  /// - Parameter change: changes the request.
  private func request(
    _ method: NetOptRequest.Method = .get, _ server: LoopbackServer,
    _ change: (inout NetOptRequest) -> Void = { _ in }
  ) throws -> NetOptRequest {
    var request = try NetOptRequest(method, "http://api.test:\(server.endpoint.port)/")
    change(&request)
    return request
  }

  @Test("a deadline of 200 ms ends a call that connects, waits for a response or receives a body")
  func deadlines() async throws {
    // The first server never responds, the second establishes no connection, and the third sends half of a
    // body.
    let silent = try LoopbackServer(.silent, on: IPAddress.freshLoopback(1)[0])
    let black = try LoopbackServer(.blackHole, on: IPAddress.freshLoopback(1)[0])
    let half = try server { exchange in
      try exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
      try exchange.waitForClose()
    }
    defer { for server in [silent, black, half] { server.stop() } }
    let bench = try await TransportBench()
    for (server, phase) in [(silent, NetOptError.Phase.receive), (black, .connect), (half, .receive)] {
      let request = try request(.get, server) { $0.options.timeout = .milliseconds(200) }
      let started = bench.loop.now()
      let error = await failure { () throws(NetOptError) in
        _ = try await bench.execute(request, [server.endpoint.address]).body.collect(upTo: 100)
      }
      let took = bench.loop.now() - started
      #expect(error?.code == .timeout)
      #expect(error?.phase == phase)
      #expect(took >= .milliseconds(200) && took < .milliseconds(250))
    }
    await bench.end()
  }

  /// At the deadline of a warm-up, the caller no longer waits, so its legs are cancelled. The time limit of a
  /// probe is a limit for the endpoint, so the endpoint has failed when it passes.
  @Test("a warm-up at its deadline blames no endpoint, and a probe at its limit does")
  func warmUpDeadline() async throws {
    let addresses = IPAddress.freshLoopback(2)
    let port = try FreePort.find(on: addresses)
    let silent = try LoopbackServer(.silent, on: addresses[0], port: port)
    let black = try LoopbackServer(.blackHole, on: addresses[1], port: port)
    defer { for server in [silent, black] { server.stop() } }
    let bench = try await TransportBench()
    let request = try NetOptRequest(.head, "https://api.test:\(port)/")
    for address in addresses {
      let now = bench.loop.now()
      let context = CallContext(id: 1, started: now, deadline: now + .milliseconds(100))
      let plan = bench.plan(request.url, [address])
      let error = await failure { () throws(NetOptError) in
        _ = try await bench.transport.warmUp(request, along: plan, in: context)
      }
      #expect(error?.code == .timeout)
      #expect(error?.phase == .connect)
      #expect(error?.route?.legs.map(\.outcome) == [.cancelled])
      #expect(error?.route?.legs.first?.failure == nil)
    }
    // Now a probe connects to each endpoint.
    for (address, kind) in zip(addresses, [LegFailure.Kind.tlsTimeout, .connectTimeout]) {
      do throws(LegError) {
        _ = try await bench.transport.connect(
          to: IPEndpoint(address, port: port), of: request.url.origin, within: .milliseconds(100), keep: false
        )
        Issue.record("a connection to a server that stays silent")
      } catch {
        #expect(error.failure.kind == kind && !error.isInconclusive)
      }
    }
    await bench.end()
  }

  @Test("a call ends its transfer and closes the connection when its task is cancelled")
  func cancellation() async throws {
    let silent = try LoopbackServer(.silent, on: IPAddress.freshLoopback(1)[0])
    defer { silent.stop() }
    let bench = try await TransportBench()
    let request = try request(.get, silent)
    let task = Task {
      await failure { () throws(NetOptError) in
        _ = try await bench.execute(request, [silent.endpoint.address])
      }
    }
    try await wait(for: "the request to arrive") { silent.received.first?.isEmpty == false }
    task.cancel()
    #expect(await task.value?.code == .cancelled)
    try await wait(for: "the connection to be closed") { silent.openConnections == 0 }
    await bench.end()
  }

  @Test("a call in a task that is already cancelled opens no connection")
  func cancelledTask() async throws {
    let silent = try LoopbackServer(.silent, on: IPAddress.freshLoopback(1)[0])
    defer { silent.stop() }
    let bench = try await TransportBench()
    let request = try request(.get, silent)
    let task = Task {
      while !Task.isCancelled { await Task.yield() }
      return await failure { () throws(NetOptError) in
        _ = try await bench.execute(request, [silent.endpoint.address])
      }
    }
    task.cancel()
    #expect(await task.value?.code == .cancelled)
    #expect(silent.connections == 0)
    await bench.end()
  }

  @Test("a response that is released before its body ends closes its connection")
  func releasedResponse() async throws {
    let half = try server { exchange in
      try exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
      try exchange.waitForClose()
    }
    defer { half.stop() }
    let bench = try await TransportBench()
    do {
      let response = try await bench.execute(try request(.get, half), [half.endpoint.address])
      #expect(response.status == 200)
      #expect(half.openConnections == 1)
    }
    try await wait(for: "the connection to be closed") { half.openConnections == 0 }
    await bench.end()
  }

  @Test("a truncated body yields the bytes received and then a retryable error")
  func truncatedBody() async throws {
    let half = try server { exchange in
      try exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
      exchange.close()
    }
    defer { half.stop() }
    let bench = try await TransportBench()
    let response = try await bench.execute(try request(.get, half), [half.endpoint.address])
    #expect(response.status == 200)
    var iterator = response.body.makeAsyncIterator()
    #expect(try await iterator.next() == Array("half".utf8))
    let error = await failure { () throws(NetOptError) in _ = try await response.body.collect(upTo: 100) }
    #expect(error?.code == .receiveFailed)
    #expect(error?.isRetryable == true)
    await bench.end()
  }

  @Test(
    "a body fails with receiveFailed when the server dies in the middle of it",
    arguments: [RequestOptions.Version.http1, .http2])
  func serverDies(_ version: RequestOptions.Version) async throws {
    let origin = try await NginxOrigin.start(for: ["api.test"], on: IPAddress.freshLoopback(1))
    defer { origin.stop() }
    let bench = try await TransportBench()
    var request = try NetOptRequest(.get, "https://api.test:\(origin.port)/slow-body?s=60")
    request.options.version = version
    let response = try await bench.execute(request, origin.endpoints.map(\.address))
    var iterator = response.body.makeAsyncIterator()
    #expect(try await iterator.next() == Array("first\n".utf8))
    origin.stop()
    let error = await failure { () throws(NetOptError) in _ = try await response.body.collect(upTo: 100) }
    #expect(error?.code == .receiveFailed)
    #expect(error?.phase == .receive)
    await bench.end()
  }

  @Test(
    "a response that is not valid HTTP is a protocol violation",
    arguments: [
      "SSH-2.0-OpenSSH_9.2\r\n", "HTTP/1.1 abc\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
      "\0\0\0\0\r\n\r\n",
    ])
  func invalidHTTP(_ answer: String) async throws {
    let odd = try server { exchange in
      try exchange.write(answer)
      exchange.close()
    }
    defer { odd.stop() }
    let bench = try await TransportBench()
    let error = await failure { () throws(NetOptError) in
      guard let request = try? request(.get, odd) else { return }
      _ = try await bench.execute(request, [odd.endpoint.address]).body.collect(upTo: 100)
    }
    #expect(error?.code == .protocolViolation)
    await bench.end()
  }

  @Test("a GET on a dead pooled connection is retried, and a POST only with an Idempotency-Key")
  func deadPooledConnection() async throws {
    // Answers the first request of each connection and closes the connection at the second request.
    let server = try server { exchange in
      if exchange.request.number == 1 { try exchange.respond(200, text: "fine") } else { exchange.close() }
    }
    defer { server.stop() }
    let bench = try await TransportBench()
    let addresses = [server.endpoint.address]
    _ = try await bench.execute(try request(.get, server), addresses).body.collect(upTo: 10)
    let again = try await bench.execute(try request(.get, server), addresses)
    #expect(again.attempts == 2)
    _ = try await again.body.collect(upTo: 10)
    let sent = server.requests.count
    let error = await failure { () throws(NetOptError) in
      guard let request = try? request(.post, server, { $0.body = .text("once") }) else { return }
      _ = try await bench.execute(request, addresses)
    }
    #expect(error?.code == .sendFailed)
    #expect(error?.isRetryable == false)
    #expect(error?.message.contains("Idempotency-Key") == true)
    #expect(server.requests.count == sent + 1)
    // This request opens a new connection. The server closes it at the POST that follows.
    let keyed = try await bench.execute(
      try request(.get, server), addresses)
    _ = try await keyed.body.collect(upTo: 10)
    let repeated = try await bench.execute(
      try request(.post, server) {
        $0.body = .text("twice")
        $0.headers["Idempotency-Key"] = "1"
      }, addresses)
    #expect(repeated.status == 200)
    #expect(repeated.attempts == 2)
    await bench.end()
  }

  @Test("a server that closes without a response is a send failure, retryable for a GET only")
  func closedWithoutResponse() async throws {
    let server = try server { $0.close() }
    defer { server.stop() }
    let bench = try await TransportBench()
    for (method, isRetryable) in [(NetOptRequest.Method.get, true), (.post, false)] {
      let error = await failure { () throws(NetOptError) in
        guard let request = try? request(method, server) else { return }
        _ = try await bench.execute(request, [server.endpoint.address])
      }
      #expect(error?.code == .sendFailed)
      #expect(error?.isRetryable == isRetryable)
      #expect(error?.endpoint == server.endpoint)
    }
    await bench.end()
  }

  @Test("shutdown fails the calls under way and refuses new calls")
  func shutdown() async throws {
    let silent = try LoopbackServer(.silent, on: IPAddress.freshLoopback(1)[0])
    defer { silent.stop() }
    let bench = try await TransportBench()
    let request = try request(.get, silent)
    let running = Task {
      await failure { () throws(NetOptError) in
        _ = try await bench.execute(request, [silent.endpoint.address])
      }
    }
    try await wait(for: "the request to arrive") { silent.received.first?.isEmpty == false }
    await bench.transport.shutdown()
    #expect(await running.value?.code == .shutDown)
    try await wait(for: "the connection to be closed") { silent.openConnections == 0 }
    // The second call comes after the event loop has stopped.
    for _ in 0..<2 {
      let error = await failure { () throws(NetOptError) in
        _ = try await bench.execute(request, [silent.endpoint.address])
      }
      #expect(error?.code == .shutDown)
      bench.loop.stop()
    }
  }

  /// Requests that netopt refuses to send: a method, header fields, and a word of the error message.
  private static let unsendable: [(String, HeaderFields, String)] = [
    ("GET ", [:], "token"), ("CONNECT", [:], "proxies"), ("GET", ["Bad Name": "x"], "token"),
    ("GET", ["X": "a\r\nHost: evil"], "line end"), ("GET", ["X": "a\0b"], "NUL"),
    ("GET", ["Host": "other.test"], "URL"), ("GET", ["Transfer-Encoding": "chunked"], "is set by netopt"),
    ("GET", ["Content-Length": "5"], "differs"),
  ]

  @Test("the transport refuses a request with an invalid method or header field", arguments: unsendable)
  func unsendableRequests(_ method: String, _ headers: HeaderFields, _ word: String) async throws {
    let bench = try await TransportBench()
    let error = await failure { () throws(NetOptError) in
      let request = try NetOptRequest(
        NetOptRequest.Method(rawValue: method), "http://api.test/", headers: headers)
      _ = try await bench.execute(request, [.loopback])
    }
    #expect(error?.code == .invalidRequest)
    #expect(error?.message.contains(word) == true)
    await bench.end()
  }
}
