import NetOptCore
import NetOptEngine
import NetOptTestSupport
import TestTools
import Testing

/// Streamed request bodies with an announced length.
@Suite(.timeLimit(.minutes(2))) struct AnnouncedLengthTests {
  /// Starts a server, and returns it with a recorder. The server records the length of each body that it
  /// received whole, and responds only then.
  private static func server() throws -> (LoopbackServer, EventRecorder<Int>) {
    let bodies = EventRecorder<Int>()
    let server = try LoopbackServer(
      .raw { exchange in
        let count = try exchange.readBody().count
        guard exchange.request.fields["Content-Length"] == "\(count)" else { return }
        bodies.record(count)
        try exchange.respond(200, [:], text: "hello")
      })
    return (server, bodies)
  }

  /// Returns a PUT request with a streamed body.
  ///
  /// - Parameter length: the announced length in bytes; `nil` to announce none.
  private static func put(_ server: LoopbackServer, _ length: Int64?, _ chunks: Chunks) throws
    -> NetOptRequest
  {
    try NetOptRequest(.put, "http://\(server.endpoint)/", body: .stream(length: length, chunks))
  }

  @Test(
    "a stream longer than announced fails the request, and the server receives no whole body",
    arguments: [0, 1, 2] as [Int64])
  func longerStreams(_ announced: Int64) async throws {
    let (server, bodies) = try Self.server()
    let bench = try await TransportBench()
    for round in 0..<100 {
      let chunks: [[UInt8]] = [[[1], [2, 3]], [[1, 2, 3]], [[1], [], [2], [3]]][round % 3]
      let request = try Self.put(server, announced, Chunks(chunks))
      let error = await failure { () throws(NetOptError) in
        _ = try await bench.execute(request, [server.endpoint.address])
      }
      #expect(error?.code == .invalidRequest, "round \(round)")
      #expect(error?.message.contains("the request announced \(announced)") == true)
    }
    // The failed requests may still send bytes. The last request gives these bytes the time to arrive.
    let last = try Self.put(server, 3, Chunks([[1], [2, 3]]))
    #expect(try await bench.execute(last, [server.endpoint.address]).status == 200)
    #expect(bodies.events == [3])
    await bench.end()
    server.stop()
  }

  @Test("a stream longer than announced fails the request over HTTP/2", arguments: [0, 1, 2] as [Int64])
  func longerStreamsOverHTTP2(_ announced: Int64) async throws {
    let origin = try await NginxOrigin.start(for: ["api.test"], on: IPAddress.freshLoopback(1))
    defer { origin.stop() }
    let bench = try await TransportBench()
    for _ in 0..<50 {
      let request = try NetOptRequest(
        .put, "https://api.test:\(origin.port)/upload",
        body: .stream(length: announced, Chunks([[1], [2, 3]])))
      let error = await failure { () throws(NetOptError) in
        _ = try await bench.execute(request, origin.endpoints.map(\.address))
      }
      #expect(error?.code == .invalidRequest)
    }
    await bench.end()
  }

  @Test("a stream of the announced length is sent with that Content-Length", arguments: [0, 1, 3, 600_000])
  func announcedLength(_ count: Int) async throws {
    let (server, bodies) = try Self.server()
    let bench = try await TransportBench()
    // The number of chunks, without the empty chunk at the end of the stream.
    for pieces in [1, 3] {
      let size = (count + pieces - 1) / pieces
      let chunks = stride(from: 0, to: count, by: max(size, 1)).map {
        [UInt8](repeating: 1, count: min(size, count - $0))
      }
      let request = try Self.put(server, Int64(count), Chunks(chunks + [[]]))
      #expect(try await bench.execute(request, [server.endpoint.address]).status == 200)
    }
    #expect(bodies.events == [count, count])
    await bench.end()
    server.stop()
  }

  @Test("a negative length is refused before anything is sent", arguments: [.min, -2, -1] as [Int64])
  func negativeLengths(_ length: Int64) async throws {
    let (server, bodies) = try Self.server()
    let bench = try await TransportBench()
    let request = try Self.put(server, length, Chunks([]))
    let error = await failure { () throws(NetOptError) in
      _ = try await bench.execute(request, [server.endpoint.address])
    }
    #expect(error?.code == .invalidRequest && error?.message.contains("\(length) bytes") == true)
    #expect(bodies.events.isEmpty)
    await bench.end()
    server.stop()
  }

  /// The event that ends a call whose stream does not end. `failure` means that the stream throws an error.
  enum End: CaseIterable { case deadline, cancellation, shutdown, failure }

  /// With the announced length 0, the transport reads the stream to its end before it sends the request.
  @Test(
    "a deadline, cancellation, shutdown or error ends a call whose stream of length 0 does not end",
    arguments: End.allCases)
  func endlessStreams(_ end: End) async throws {
    let (server, bodies) = try Self.server()
    let bench = try await TransportBench()
    let asked = EventRecorder<Int>()
    let stream = EndlessStream(asked, fails: end == .failure)
    var request = try NetOptRequest(.put, "http://\(server.endpoint)/", body: .stream(length: 0, stream))
    request.options.timeout = end == .deadline ? .milliseconds(200) : .seconds(60)
    let sent = request
    let call = Task { () -> NetOptError? in
      await failure { () throws(NetOptError) in
        _ = try await bench.execute(sent, [server.endpoint.address])
      }
    }
    try await asked.wait(for: "the stream to be asked") { !$0.isEmpty }
    if end == .cancellation { call.cancel() }
    if end == .shutdown { await bench.transport.shutdown() }
    let error = await call.value
    let expected: [End: NetOptError.Code] = [
      .deadline: .timeout, .cancellation: .cancelled, .shutdown: .shutDown, .failure: .sendFailed,
    ]
    #expect(error?.code == expected[end], "\(String(describing: error))")
    if end == .deadline { #expect(error?.phase == .send) }
    #expect(bodies.events.isEmpty)
    await bench.end()
    server.stop()
  }
}

/// A stream without chunks. `next()` waits until its task is cancelled, or throws at once (`fails`).
private struct EndlessStream: AsyncSequence, AsyncIteratorProtocol, Sendable {
  /// Records each call of `next()`.
  private let asked: EventRecorder<Int>
  /// Whether `next()` throws `Chunks.Broken` at once.
  private let fails: Bool

  init(_ asked: EventRecorder<Int>, fails: Bool) {
    self.asked = asked
    self.fails = fails
  }

  mutating func next() async throws -> [UInt8]? {
    asked.record(1)
    if fails { throw Chunks.Broken() }
    try await Task.sleep(for: .seconds(3600))
    return nil
  }

  func makeAsyncIterator() -> EndlessStream { self }
}
