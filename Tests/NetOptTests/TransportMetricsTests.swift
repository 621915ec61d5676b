import NetOptCore
import NetOptLocking
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOpt

/// What a client counts of its connections, its bytes and its probes.
@Suite struct TransportMetricsTests {
  /// The sums of the bytes of bodies that a server has received and sent.
  private struct Bytes {
    var received = 0
    var sent = 0
  }

  /// Reads the value of a sample in Prometheus' text.
  private func value(_ name: String, _ client: NetOptClient) throws -> Int {
    let lines = client.metrics.prometheusText.split(separator: "\n")
    let line = try #require(lines.first { $0.hasPrefix(name + " ") }, "\(name)")
    return try #require(Int(line.dropFirst(name.count + 1)), "\(line)")
  }

  /// The target of a request is `/SIZE/close` or `/SIZE/keep`: the size of the response's body, and what the server
  /// does with the connection afterwards.
  @Test(
    "connections and bytes are those that the server saw", .timeLimit(.minutes(1)),
    arguments: 1...6 as ClosedRange<UInt64>)
  func connectionsAndBytes(seed: UInt64) async throws {
    var random = SplitMix64(seed: seed)
    let bytes = Locked(Bytes())
    let server = try LoopbackServer(
      .raw { exchange in
        let count = try exchange.readBody().count
        let parts = exchange.request.target.split(separator: "/")
        let size = Int(parts[0]) ?? 0
        bytes.withLock {
          $0.received += count
          $0.sent += size
        }
        let closes = parts[1] == "close"
        try exchange.respond(
          200, closes ? ["Connection": "close"] : [:], body: [UInt8](repeating: 7, count: size))
        if closes { try exchange.end() }
      })
    defer { server.stop() }
    var configuration = ClientConfiguration()
    configuration.proxy = .none
    let client = try NetOptClient(configuration)
    for _ in 0..<12 {
      let requests = try (0..<(1 + random.below(5))).map { _ in
        let size = random.below(3) == 0 ? random.below(300_000) : random.below(200)
        let end = random.below(3) == 0 ? "close" : "keep"
        let content = [UInt8](repeating: 1, count: Int(random.below(100_000)))
        let body: RequestBody =
          switch random.below(3) {
          case 0: .none
          case 1: .bytes(content)
          default:
            .stream(
              AsyncStream<[UInt8]> {
                $0.yield(content)
                $0.finish()
              })
          }
        return try NetOptRequest(.post, "http://\(server.endpoint)/\(size)/\(end)", body: body)
      }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for request in requests {
          group.addTask { _ = try await client.execute(request).body.collect(upTo: 1 << 20) }
        }
        try await group.waitForAll()
      }
    }
    let seen = bytes.withLock { $0 }
    #expect(seen.received > 0 && seen.sent > 0)
    let io = "netopt_client_body_bytes_total{network_io_direction="
    #expect(try value(io + "\"receive\"}", client) == seen.sent, "seed \(seed)")
    #expect(try value(io + "\"transmit\"}", client) == seen.received, "seed \(seed)")
    #expect(try value("netopt_client_connections_total", client) == server.connections)
    try await wait(for: "both sides to have the same connections") {
      try value("netopt_client_open_connections", client) == server.openConnections
    }
    await client.shutdown()
    #expect(try value("netopt_client_open_connections", client) == 0)
  }

  @Test("each sample of a probe counts once, by its outcome", .timeLimit(.minutes(1)))
  func probes() async throws {
    let lab = try StubLab([.respond(200), .respond(200), .respond(200)])
    lab.transport.set(.refuse, for: lab.addresses[1])
    func count(_ outcome: String) throws -> Int {
      try value("netopt_client_probes_total{netopt_outcome=\"\(outcome)\"}", lab.client)
    }
    let (succeeded, failed) = (try count("succeeded"), try count("failed"))
    let endpoints = try await lab.client.probe().flatMap(\.endpoints)
    #expect(endpoints.filter { $0.samples.isEmpty }.map(\.address) == [lab.addresses[1]])
    #expect(try count("succeeded") - succeeded == endpoints.reduce(0) { $0 + $1.samples.count })
    // A refusal ends the samples of its endpoint.
    #expect(try count("failed") == failed + 1)
    #expect(try count("inconclusive") == 0)
    // A cancelled sample tells nothing.
    lab.transport.set(.silent, for: lab.addresses[2])
    let connects = lab.transport.opened.count { $0 == lab.addresses[2] }
    let cancelled = Task { try await lab.client.probe() }
    try await wait(for: "a sample to wait") {
      lab.transport.opened.count { $0 == lab.addresses[2] } > connects
    }
    cancelled.cancel()
    _ = await cancelled.result
    try await wait(for: "the sample to count") { try count("inconclusive") > 0 }
    await lab.client.shutdown()
  }
}
