import NetOptCore
import NetOptEngine
import NetOptTestSupport
import Testing

/// The limit for the time that a turn of the loop spends on bodies (`ReceivingTurn`), with many concurrent
/// bodies that are slow to decode.
@Suite struct ReceivingTurnTests {
  /// Returns a body in Zstandard that is slow to decode (RFC 8878, section 3.1.1.2).
  ///
  /// The body has compressed blocks of 18 bytes, each of which yields 4 bytes. Decoding one takes 3 to 4 µs,
  /// because the decoder builds three tables of 512 entries for it. `ContentDecoder` allows a time for each
  /// byte, and refuses a body that takes longer. A raw block with 20 bytes follows each compressed block
  /// except the last one. These bytes are decoded fast and add to the allowed time. So decoding takes less
  /// than half of the allowed time.
  ///
  /// - Parameter blocks: the number of compressed blocks.
  private static func coded(blocks: Int) -> [UInt8] {
    let block: [UInt8] = [
      0x7c, 0, 0, 0x08, 0x41, 0x01, 0xa8, 0x24, 0xe0, 0x7f, 0xe3, 0x7f, 0xe4, 0xff, 0, 0, 0x0a, 0x04,
    ]
    let plain = [20 << 3, 0, 0] + [UInt8](repeating: 0x2e, count: 20)
    let last = [block[0] | 1] + block[1...]
    return [0x28, 0xb5, 0x2f, 0xfd, 0, 0x50]
      + Array([[UInt8]](repeating: block + plain, count: blocks - 1).joined()) + last
  }

  /// The longest delay that the test allows for a call. A busy machine stays below it. Decoding all bodies in
  /// one turn would delay calls by more than 6 s even on an idle machine.
  private static let lateness = Duration.seconds(2)

  /// Starts a server. It responds to `/slow` with a body that is slow to decode, and to every other target
  /// with the target itself.
  private static func server(blocks: Int) throws -> LoopbackServer {
    let body = coded(blocks: blocks)
    return try LoopbackServer(
      .raw { exchange in
        guard exchange.request.target == "/slow" else {
          return try exchange.respond(200, text: exchange.request.target)
        }
        try exchange.respond(200, ["Content-Encoding": "zstd"], body: body)
      })
  }

  @Test("bodies that are decoded in several turns arrive whole", arguments: [1 << 10, 1 << 20])
  func whole(bodyBuffer: Int) async throws {
    let server = try Self.server(blocks: 30_000)
    let bench = try await TransportBench { $0.bodyBuffer = bodyBuffer }
    let port = server.endpoint.port
    try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<8 {
        group.addTask {
          let request = try NetOptRequest(.get, "http://slow.test:\(port)/slow")
          let response = try await bench.execute(request, [.loopback])
          return try await response.body.collect(upTo: 1 << 20).count
        }
      }
      for try await count in group { #expect(count == 30_000 * 24 - 20) }
    }
    await bench.end()
    server.stop()
  }

  @Test("slow decoding delays neither other calls nor deadlines")
  func deadlines() async throws {
    let server = try Self.server(blocks: 400_000)
    let bench = try await TransportBench()
    let port = server.endpoint.port
    let clock = SystemTimeSource()
    let limit = Duration.milliseconds(1000)
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<20 {
        group.addTask {
          let begun = clock.now()
          let error = await failure { () async throws(NetOptError) in
            var request = try NetOptRequest(.get, "http://slow.test:\(port)/slow")
            request.options.timeout = limit
            _ = try await bench.execute(request, [.loopback]).body.collect(upTo: 64 << 20)
          }
          #expect(error?.code == .timeout)
          #expect(clock.now() - begun < limit + Self.lateness)
        }
      }
      for number in 0..<10 {
        let begun = clock.now()
        let error = await failure { () async throws(NetOptError) in
          let request = try NetOptRequest(.get, "http://other.test:\(port)/\(number)")
          let body = try await bench.execute(request, [.loopback]).body.collect(upTo: 100)
          #expect(String(decoding: body, as: UTF8.self) == "/\(number)")
        }
        #expect(error == nil)
        #expect(clock.now() - begun < Self.lateness)
      }
    }
    await bench.end()
    server.stop()
  }
}
