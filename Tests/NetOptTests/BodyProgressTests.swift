import NetOpt
import NetOptLocking
import NetOptTestSupport
import TestTools
import Testing

/// `RequestBody.reportingProgress`, over connections to a loopback server.
@Suite struct BodyProgressTests {
  private struct Report: Equatable {
    let sent: Int64
    let total: Int64?
  }

  /// A loss of the connection after the request.
  private struct Lost: Error {}

  private static func bytes(_ count: Int, _ random: inout SplitMix64) -> [UInt8] {
    (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
  }

  /// A body of a random kind and size, and whether it can be sent again.
  private static func body(
    _ folder: String, _ random: inout SplitMix64
  ) throws -> (body: RequestBody, isRepeatable: Bool) {
    let size = Int(random.element(of: [0, 1, 65_536, 65_537, random.below(900_000)]))
    let content = bytes(size, &random)
    let path = folder + "/body"
    try TextFile.write(content, to: path)
    let chunks = AsyncStream<[UInt8]> { stream in
      for start in Swift.stride(from: 0, to: size, by: 10_000) {
        stream.yield(Array(content[start..<min(start + 10_000, size)]))
      }
      stream.finish()
    }
    switch random.below(6) {
    case 0: return (.bytes(content), true)
    case 1: return (try .file(path, contentType: "text/x"), true)
    case 2: return (.stream(length: Int64(size), chunks), false)
    case 3: return (.stream(chunks), false)
    case 4: return (try .multipart([.field("a", "b"), .file("c", path)]), true)
    default: return (try .gzip(.file(path)), true)
    }
  }

  @Test(
    "reports rise to the length of the body as it arrives, and begin again when it is sent again",
    .timeLimit(.minutes(1)), arguments: 1...40 as ClosedRange<UInt64>)
  func reports(seed: UInt64) async throws {
    var random = SplitMix64(seed: seed)
    let folder = try TemporaryDirectory.make("progress")
    let (plain, isRepeatable) = try Self.body(folder, &random)
    let reports = Locked<[Report]>([])
    let body = plain.reportingProgress { sent, total in
      reports.withLock { $0.append(Report(sent: sent, total: total)) }
    }
    #expect(body.length == plain.length && body.contentType == plain.contentType)
    #expect(body.contentEncoding == plain.contentEncoding)
    let count = random.below(3)
    let losses = Locked(count)
    let received = Locked<[[UInt8]]>([])
    let server = try LoopbackServer(
      .raw { exchange in
        let body = try exchange.readBody()
        let isLost = losses.withLock { left in
          defer { left = left > 0 ? left - 1 : 0 }
          return left > 0
        }
        received.withLock { $0.append(body) }
        if isLost { throw Lost() }
        try exchange.respond(200)
      })
    defer { server.stop() }
    var configuration = ClientConfiguration()
    configuration.proxy = .none
    let client = try NetOptClient(configuration)
    let request = try NetOptRequest(.put, "http://\(server.endpoint)/", body: body)
    let status = try? await client.execute(request).status
    // A stream that was sent cannot be sent again.
    #expect(status == (isRepeatable || count == 0 ? 200 : nil), "seed \(seed)")
    await client.shutdown()

    let all = received.withLock { $0 }
    let size = Int64(all.last?.count ?? 0)
    let seen = reports.withLock { $0 }
    #expect(seen.allSatisfy { $0.total == plain.length && $0.sent > 0 && $0.sent <= size }, "seed \(seed)")
    guard size > 0 else {
      #expect(seen.isEmpty)
      return
    }
    #expect(seen.last?.sent == size, "seed \(seed)")
    // Each time the body is sent, the reports begin again and end with the whole.
    #expect(seen.count { $0.sent == size } == all.count, "seed \(seed)")
    for (one, next) in zip(seen, seen.dropFirst()) {
      #expect(one.sent == size ? next.sent <= one.sent : next.sent > one.sent, "seed \(seed)")
    }
  }

  @Test("a body in memory that reports its progress is sent again after a redirect")
  func redirect() async throws {
    let transport = StubTransport(
      [
        .loopback: .answer { request, body in
          .response(
            request.url.path == "/a"
              ? StubResponse(307, fields: ["Location": "/b"]) : StubResponse(200, body: body))
        }
      ], resolver: StubResolver("api.test", [.loopback]))
    let client = try NetOptClient(transport: transport)
    let reports = Locked<[Int64]>([])
    let text = String(repeating: "x", count: 100_000)
    let body = RequestBody.text(text).reportingProgress { sent, _ in reports.withLock { $0.append(sent) } }
    let request = try NetOptRequest(.post, "https://api.test/a", body: body)
    #expect(try await client.execute(request).text() == text)
    #expect(reports.withLock { $0 } == [65_536, 100_000, 65_536, 100_000])
    await client.shutdown()
  }
}
