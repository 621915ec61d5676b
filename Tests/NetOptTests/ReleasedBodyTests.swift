import NetOpt
import NetOptLocking
import NetOptTestSupport
import TestTools
import Testing

/// Bodies that the program releases before it has read them to their end.
@Suite struct ReleasedBodyTests {
  /// What a server sends after the head.
  private struct Plan: Sendable {
    var size: Int
    var isChunked: Bool
    /// The wait before the body, and in its middle.
    var pauses: [Duration]
    /// Whether the program reads the body.
    var reads: Bool
  }

  private enum Event: Equatable, Sendable {
    case finished(UInt64)
    case failed(UInt64, NetOptError.Code)
  }

  private final class Ends: CallObserver {
    let recorder = EventRecorder<Event>()
    func callDidFinish(_ id: UInt64, _ timings: Timings) { recorder.record(.finished(id)) }
    func callDidFail(_ id: UInt64, _ error: NetOptError) { recorder.record(.failed(id, error.code)) }
  }

  private static func client(
    _ ends: Ends, _ change: (inout ClientConfiguration.Connections) -> Void = { _ in }
  ) throws -> NetOptClient {
    var configuration = ClientConfiguration()
    configuration.proxy = .none
    change(&configuration.connections)
    configuration.observers = [ends]
    return try NetOptClient(configuration)
  }

  /// The body of the response to a target: its first bytes name the target.
  private static func body(_ target: String, _ size: Int) -> [UInt8] {
    Array((target + String(repeating: ".", count: size)).utf8.prefix(max(size, target.utf8.count)))
  }

  /// Sends head and body one after the other.
  private static func send(_ plan: Plan, on exchange: LoopbackExchange) throws {
    let body = body(exchange.request.target, plan.size)
    let framing = plan.isChunked ? "Transfer-Encoding: chunked" : "Content-Length: \(body.count)"
    try exchange.write("HTTP/1.1 200 OK\r\n\(framing)\r\n\r\n")
    let half = body.count / 2
    for (piece, pause) in zip([body[..<half], body[half...]], plan.pauses) where !piece.isEmpty {
      try exchange.wait(pause)
      if plan.isChunked { try exchange.write("\(String(piece.count, radix: 16))\r\n") }
      try exchange.write(Array(piece))
      if plan.isChunked { try exchange.write("\r\n") }
    }
    if plan.isChunked { try exchange.write("0\r\n\r\n") }
  }

  @Test(
    "a POST whose small response is not read keeps its connection, and is no failure",
    arguments: [false, true], [1, 512 * 1024])
  func unread(isChunked: Bool, bodyBuffer: Int) async throws {
    let plan = Plan(size: 200, isChunked: isChunked, pauses: [.milliseconds(5), .zero], reads: false)
    let server = try LoopbackServer(
      .raw { exchange in
        _ = try exchange.readBody()
        try Self.send(plan, on: exchange)
      })
    defer { server.stop() }
    let ends = Ends()
    let client = try Self.client(ends) { ($0.perEndpoint, $0.bodyBuffer) = (1, bodyBuffer) }
    for number in 1...30 as ClosedRange<UInt64> {
      let request = try NetOptRequest(.post, "http://\(server.endpoint)/\(number)", body: .text("x"))
      try await client.execute(request).requireSuccess()
      // The observers learn of the end when the rest has come. Then the connection is free.
      try await ends.recorder.wait(for: "the end of the call") { $0.count == number }
    }
    // On a busy machine, a rest may come too late.
    let late = ends.recorder.events.count { if case .failed = $0 { true } else { false } }
    // No connection follows a last one that was late.
    #expect((late...late + 1).contains(server.connections) && late < 10)
    await client.shutdown()
  }

  @Test(
    "each response belongs to its request, whatever was released before; each call has one end",
    .timeLimit(.minutes(1)), arguments: 1...8 as ClosedRange<UInt64>)
  func mixed(seed: UInt64) async throws {
    var random = SplitMix64(seed: seed)
    let plans = (0..<40).map { _ in
      Plan(
        size: Int(random.element(of: [0, 10, 1000, 60_000, 70_000, 400_000])),
        isChunked: random.isOne(in: 2),
        pauses: (0..<2).map { _ in .milliseconds(random.element(of: [0, 0, 1, 30, 150])) },
        reads: random.isOne(in: 2))
    }
    let server = try LoopbackServer(
      .raw { exchange in
        let number = Int(exchange.request.target.dropFirst()) ?? 0
        try Self.send(plans[number], on: exchange)
      })
    defer { server.stop() }
    let ends = Ends()
    let client = try Self.client(ends)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for lane in 0..<4 {
        group.addTask {
          for number in stride(from: lane, to: plans.count, by: 4) {
            let plan = plans[number]
            let response = try await client.execute(
              NetOptRequest(.get, "http://\(server.endpoint)/\(number)"))
            guard plan.reads else { continue }
            let bytes = try await response.body.collect(upTo: 1 << 20)
            #expect(bytes == Self.body("/\(number)", plan.size), "seed \(seed), request \(number)")
          }
        }
      }
      try await group.waitForAll()
    }
    try await ends.recorder.wait(for: "the ends of all calls") { $0.count >= plans.count }
    await client.shutdown()
    let events = ends.recorder.events
    let ids = events.map { event in
      switch event {
      case .finished(let id): id
      case .failed(let id, _): id
      }
    }
    #expect(ids.sorted() == Array(1...UInt64(plans.count)), "seed \(seed)")
    for case .failed(_, let code) in events { #expect(code == .cancelled, "seed \(seed)") }
    let finished = events.count { if case .finished = $0 { true } else { false } }
    #expect(finished >= plans.count { $0.reads }, "seed \(seed)")
  }

  @Test(
    "the connection of a body without end, and of a long one, is closed after the release",
    arguments: ["endless", "long", "silent"])
  func closed(_ kind: String) async throws {
    let server = try LoopbackServer(
      .raw { exchange in
        let framing =
          kind == "endless" ? "Transfer-Encoding: chunked" : "Content-Length: \(kind == "long" ? 70_000 : 20)"
        try exchange.write("HTTP/1.1 200 OK\r\n\(framing)\r\n\r\n")
        while kind == "endless" {
          try exchange.write("1\r\nx\r\n")
          try exchange.wait(.milliseconds(1))
        }
        try exchange.waitForClose()
      })
    defer { server.stop() }
    let ends = Ends()
    let client = try Self.client(ends)
    let status = try await client.execute(NetOptRequest(.get, "http://\(server.endpoint)/")).status
    #expect(status == 200)
    try await wait(for: "the connection to be closed") { server.openConnections == 0 }
    try await ends.recorder.wait(for: "the end of the call") { $0 == [.failed(1, .cancelled)] }
    await client.shutdown()
  }

  /// A server that sends a head and no body.
  private static func serverOfHeads() throws -> LoopbackServer {
    try LoopbackServer(
      .raw { exchange in
        try exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n")
        try exchange.waitForClose()
      })
  }

  @Test("a shutdown ends the receiving of a released body")
  func shutDown() async throws {
    let server = try Self.serverOfHeads()
    defer { server.stop() }
    let ends = Ends()
    let client = try Self.client(ends)
    _ = try await client.execute(NetOptRequest(.get, "http://\(server.endpoint)/")).status
    await client.shutdown()
    try await ends.recorder.wait(for: "the end of the call") { $0 == [.failed(1, .cancelled)] }
  }

  @Test("a release while the request is still being sent ends the sending")
  func upload() async throws {
    let server = try Self.serverOfHeads()
    defer { server.stop() }
    let ends = Ends()
    let client = try Self.client(ends)
    let (chunks, source) = AsyncStream<[UInt8]>.makeStream()
    source.yield([1, 2, 3])
    let request = try NetOptRequest(.post, "http://\(server.endpoint)/", body: .stream(chunks))
    _ = try await client.execute(request).status
    try await wait(for: "the connection to be closed") { server.openConnections == 0 }
    try await ends.recorder.wait(for: "the end of the call") { $0 == [.failed(1, .cancelled)] }
    source.finish()
    await client.shutdown()
  }
}
