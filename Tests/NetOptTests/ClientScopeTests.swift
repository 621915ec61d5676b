import NetOptCore
import NetOptLocking
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOpt

/// Clients and responses whose life is a scope, and shutdowns that wait for running calls.
@Suite struct ClientScopeTests {
  private struct Failure: Error, Equatable {}

  private static func configuration() -> ClientConfiguration {
    var configuration = ClientConfiguration()
    configuration.proxy = .none
    return configuration
  }

  /// A server that answers after `latch` is open: with a body in two halves, the second after `second`.
  private static func server(_ latch: Latch, second: Latch) throws -> LoopbackServer {
    try LoopbackServer(
      .raw { exchange in
        _ = try exchange.readBody()
        while !latch.opened { try exchange.wait(.milliseconds(2)) }
        try exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
        while !second.opened { try exchange.wait(.milliseconds(2)) }
        try exchange.write("cd")
      })
  }

  @Test("withClient shuts the client down after a result and after an error")
  func scope() async throws {
    var kept: NetOptClient?
    let value = try await NetOptClient.withClient(Self.configuration()) { client in
      kept = client
      return 7
    }
    #expect(value == 7)
    let request = try NetOptRequest(.get, "http://127.0.0.1:1/")
    let first = try #require(kept)
    let error = await #expect(throws: NetOptError.self) { try await first.execute(request) }
    #expect(error?.code == .shutDown)
    await #expect(throws: Failure()) {
      try await NetOptClient.withClient(Self.configuration()) { client in
        kept = client
        throw Failure()
      }
    }
    let second = try #require(kept)
    let other = await #expect(throws: NetOptError.self) { try await second.execute(request) }
    #expect(other?.code == .shutDown)
  }

  @Test("execute with a closure returns its result, and passes on its error")
  func responses() async throws {
    let server = try LoopbackServer(.raw { try $0.respond(200, text: "content") })
    defer { server.stop() }
    try await NetOptClient.withClient(Self.configuration()) { client in
      let request = try NetOptRequest(.get, "http://\(server.endpoint)/")
      #expect(try await client.execute(request) { try await $0.text() } == "content")
      await #expect(throws: Failure()) { try await client.execute(request) { _ in throw Failure() } }
    }
  }

  @Test(
    "a drain lets calls and bodies end, refuses new calls, and returns then",
    .timeLimit(.minutes(1)), arguments: 1...10 as ClosedRange<UInt64>)
  func drain(seed: UInt64) async throws {
    var random = SplitMix64(seed: seed)
    let (latch, second) = (Latch(), Latch())
    let server = try Self.server(latch, second: second)
    defer { server.stop() }
    let client = try NetOptClient(Self.configuration())
    let request = try NetOptRequest(.post, "http://\(server.endpoint)/", body: .text("x"))
    let count = Int(1 + random.below(6))
    let headFirst = random.below(2) == 0
    let calls = (0..<count).map { _ in Task { try await client.execute(request).text() } }
    try await wait(for: "the requests") { server.requests.count == count }
    // In half of the runs the heads arrive before the drain begins, in the other half during it.
    if headFirst { latch.open() }
    let returned = Locked(false)
    let shutdown = Task {
      await client.shutdown(draining: .seconds(30))
      returned.withLock { $0 = true }
    }
    // New calls are refused as soon as the drain has begun.
    var refused: NetOptError?
    while refused == nil {
      do throws(NetOptError) {
        var quick = request
        quick.url = try HTTPURL("http://127.0.0.1:1/")
        _ = try await client.execute(quick)
      } catch {
        if error.code == .shutDown { refused = error } else { #expect(error.code == .connectFailed) }
      }
    }
    #expect(!returned.withLock { $0 })
    latch.open()
    second.open()
    for call in calls { #expect(try await call.value == "abcd") }
    await shutdown.value
    #expect(server.requests.count == count)
  }

  @Test("a drain ends at its limit, and what is left fails with shutDown")
  func limit() async throws {
    try await Self.checkEndedCall { await $0.shutdown(draining: .milliseconds(20)) }
  }

  /// Checks that a call that waits for its response fails with `shutDown` when the closure has shut the client
  /// down.
  private static func checkEndedCall(_ shutDown: (NetOptClient) async -> Void) async throws {
    let (latch, second) = (Latch(), Latch())
    let server = try server(latch, second: second)
    defer { server.stop() }
    let client = try NetOptClient(configuration())
    let request = try NetOptRequest(.get, "http://\(server.endpoint)/")
    let waiting = Task { try await client.execute(request) }
    try await wait(for: "the request") { server.requests.count == 1 }
    await shutDown(client)
    let error = await #expect(throws: NetOptError.self) { try await waiting.value }
    #expect(error?.code == .shutDown)
    latch.open()
    second.open()
  }

  @Test(
    "a drain without a limit ends when an open body is read or released", .timeLimit(.minutes(1)),
    arguments: [true, false])
  func openBody(isRead: Bool) async throws {
    let (latch, second) = (Latch(), Latch())
    latch.open()
    let server = try Self.server(latch, second: second)
    defer { server.stop() }
    let client = try NetOptClient(Self.configuration())
    var response: NetOptResponse? = try await client.execute(
      NetOptRequest(.get, "http://\(server.endpoint)/"))
    let shutdown = Task { await client.shutdown(draining: .seconds(3600)) }
    try await Self.waitForDrain(of: client)
    if isRead {
      second.open()
      #expect(try await response?.text() == "abcd")
    } else {
      #expect(response?.status == 200)
      response = nil
    }
    await shutdown.value
    second.open()
  }

  /// Waits until a client refuses new calls.
  private static func waitForDrain(of client: NetOptClient) async throws {
    let request = try NetOptRequest(.get, "http://127.0.0.1:1/")
    try await wait(for: "the drain to begin") {
      do throws(NetOptError) {
        _ = try await client.execute(request)
        return false
      } catch {
        return error.code == .shutDown
      }
    }
  }

  /// With an empty `drain` of the transport, the shutdown would end the body that the caller still reads.
  @Test("a service that is cancelled lets a call end whose body is still arriving")
  func runningCall() async throws {
    let (latch, second) = (Latch(), Latch())
    latch.open()
    let server = try Self.server(latch, second: second)
    defer { server.stop() }
    let client = try NetOptClient(Self.configuration())
    let service = Task { await client.run() }
    let response = try await client.execute(NetOptRequest(.get, "http://\(server.endpoint)/"))
    service.cancel()
    try await Self.waitForDrain(of: client)
    second.open()
    #expect(try await response.text() == "abcd")
    await service.value
  }

  @Test("two drains at once and a drain after a cancelled one wait for the same call, and probes are refused")
  func severalDrains() async throws {
    let (latch, second) = (Latch(), Latch())
    let server = try Self.server(latch, second: second)
    defer { server.stop() }
    let client = try NetOptClient(Self.configuration())
    let request = try NetOptRequest(.get, "http://\(server.endpoint)/")
    let call = Task { try await client.execute(request).text() }
    try await wait(for: "the request") { server.requests.count == 1 }
    let first = Task { await client.drain() }
    first.cancel()
    await first.value
    let others = (0..<3).map { _ in Task { await client.drain() } }
    try await Self.waitForDrain(of: client)
    #expect(await client.warmUp(hosts: ["127.0.0.1"]).values.map(\.code) == [.shutDown])
    let error = await #expect(throws: NetOptError.self) { try await client.probe() }
    #expect(error?.code == .shutDown)
    latch.open()
    second.open()
    #expect(try await call.value == "abcd")
    for other in others { await other.value }
    await client.shutdown()
  }

  @Test("run waits for the cancellation of its task, and then shuts the client down")
  func run() async throws {
    let client = try NetOptClient(Self.configuration())
    let service = Task { await client.run() }
    let server = try LoopbackServer(.raw { try $0.respond(200) })
    defer { server.stop() }
    let request = try NetOptRequest(.get, "http://\(server.endpoint)/")
    #expect(try await client.execute(request).status == 200)
    service.cancel()
    await service.value
    let error = await #expect(throws: NetOptError.self) { try await client.execute(request) }
    #expect(error?.code == .shutDown)
  }

  @Test("a shutdown whose task is cancelled does not wait for calls")
  func cancelledDrain() async throws {
    try await Self.checkEndedCall { client in
      let shutdown = Task { await client.shutdown(draining: .seconds(3600)) }
      shutdown.cancel()
      await shutdown.value
    }
  }
}
