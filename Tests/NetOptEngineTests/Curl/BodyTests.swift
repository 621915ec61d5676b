import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@Suite struct BodyTests {
  /// Starts an origin and a transport, calls `body`, and ends both.
  private func withOrigin(_ body: (NginxOrigin, TransportBench) async throws -> Void) async throws {
    let origin = try await NginxOrigin.start(for: ["api.test"], on: IPAddress.freshLoopback(1))
    defer { origin.stop() }
    let bench = try await TransportBench()
    try await body(origin, bench)
    await bench.end()
  }

  /// Sends a request and returns the response.
  ///
  /// - Parameters:
  ///   - target: the path and the query.
  ///   - change: changes the request before it is sent. Without a change it is a GET.
  private func get(
    _ target: String, _ origin: NginxOrigin, _ bench: TransportBench,
    _ change: (inout NetOptRequest) -> Void = { _ in }
  ) async throws -> NetOptResponse {
    var request = try NetOptRequest(.get, "https://api.test:\(origin.port)\(target)")
    change(&request)
    return try await bench.execute(request, origin.endpoints.map(\.address))
  }

  @Test(
    "a body of up to 10 MB arrives whole over HTTP/2 and HTTP/1.1",
    arguments: [0, 1, 10_000, 1_000_000, 10_000_000])
  func responseBodies(_ size: Int) async throws {
    try await withOrigin { origin, bench in
      for version in [RequestOptions.Version.automatic, .http1] {
        let response = try await get("/bytes/\(size)", origin, bench) { $0.options.version = version }
        #expect(try await response.body.collect(upTo: size) == [UInt8](repeating: 0, count: size))
        #expect(response.head.first("Content-Length") == "\(size)")
      }
    }
  }

  @Test("collecting a body that is one byte over the limit fails with bodyTooLarge")
  func bodyOverLimit() async throws {
    try await withOrigin { origin, bench in
      let response = try await get("/bytes/1000000", origin, bench)
      let error = await failure { () throws(NetOptError) in _ = try await response.body.collect(upTo: 999_999)
      }
      #expect(error?.code == .bodyTooLarge)
    }
  }

  @Test("a gzip body is decoded, and a request with decompress off asks for no coding")
  func compressedBodies() async throws {
    try await withOrigin { origin, bench in
      let decoded = try await get("/text", origin, bench)
      let text = try await decoded.body.collect(upTo: 100_000)
      #expect(text.count == 20_000)
      #expect(decoded.head.first("content-encoding") == "gzip")
      let plain = try await get("/text", origin, bench) { $0.options.decompress = false }
      #expect(plain.head.first("content-encoding") == nil)
      #expect(try await plain.body.collect(upTo: 100_000) == text)
    }
  }

  @Test("a HEAD response has no body, and the same transport then sends a PUT with a body")
  func headRequests() async throws {
    try await withOrigin { origin, bench in
      let head = try await get("/bytes/1000", origin, bench) { $0.method = .head }
      #expect(head.head.first("Content-Length") == "1000")
      #expect(try await head.body.collect(upTo: 0).isEmpty)
      // The timeout is short, because a faulty client would wait for the body that Content-Length announces.
      let withAnEmptyBody = try await get("/bytes/1000", origin, bench) {
        $0.method = .head
        $0.body = .bytes([])
        $0.options.version = .http1
        $0.options.timeout = .seconds(2)
      }
      #expect(try await withAnEmptyBody.body.collect(upTo: 0).isEmpty)
      // libcurl's easy handles serve one request after the other. The options for HEAD must not affect the
      // PUT.
      let echo = try await get("/echo", origin, bench) {
        $0.method = .put
        $0.body = .text("abc")
      }
      let text = String(decoding: try await echo.body.collect(upTo: 10_000), as: UTF8.self)
      #expect(text.hasPrefix("PUT /echo") && text.hasSuffix("abc"))
    }
  }

  @Test("the server receives the method and header fields, and no added Content-Type or Expect")
  func methodsAndFields() async throws {
    try await withOrigin { origin, bench in
      for version in [RequestOptions.Version.automatic, .http1] {
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PURGE"] {
          let response = try await get("/echo", origin, bench) {
            $0.method = NetOptRequest.Method(rawValue: method)
            $0.headers = ["X-One": "1", "X-Empty": "", "X-Two": "a", "X-Two": "b", "X-Space": "  padded  "]
            $0.options.version = version
          }
          let text = String(decoding: try await response.body.collect(upTo: 10_000), as: UTF8.self)
          let lines = text.lowercased().split(separator: "\r\n").map(String.init)
          #expect(lines.first?.hasPrefix("\(method.lowercased()) /echo") == true)
          #expect(lines.contains("x-one: 1"))
          #expect(lines.contains("x-two: a") && lines.contains("x-two: b"))
          #expect(lines.contains("x-space: padded"))
          #expect(lines.contains { $0.hasPrefix("x-empty:") })
          #expect(lines.contains("user-agent: netopt"))
          #expect(!lines.contains { $0.hasPrefix("content-type") || $0.hasPrefix("expect") })
        }
      }
    }
  }

  @Test("a transport with an empty user agent sends no User-Agent field")
  func emptyUserAgent() async throws {
    try await withOrigin { origin, _ in
      let bench = try await TransportBench { $0.userAgent = "" }
      let response = try await get("/echo", origin, bench)
      let text = String(decoding: try await response.body.collect(upTo: 10_000), as: UTF8.self)
      #expect(text.hasPrefix("GET /echo") && !text.lowercased().contains("user-agent"))
      await bench.end()
    }
  }

  @Test("empty, buffered and streamed request bodies arrive whole over HTTP/2 and HTTP/1.1")
  func requestBodies() async throws {
    try await withOrigin { origin, bench in
      let chunks = (0..<40).map { [UInt8](repeating: UInt8($0), count: 50_000) }
      let bodies: [RequestBody] = [
        .none, .bytes([]), .bytes(chunks.flatMap { $0 }), .stream(length: 2_000_000, Chunks(chunks)),
        .stream(Chunks(chunks)), .stream(Chunks([])),
      ]
      for version in [RequestOptions.Version.automatic, .http1] {
        for (body, length) in zip(bodies, [0, 0, 2_000_000, 2_000_000, 2_000_000, 0]) {
          let response = try await get("/upload", origin, bench) {
            $0.method = .post
            $0.body = body
            $0.options.version = version
          }
          let text = String(decoding: try await response.body.collect(upTo: 100), as: UTF8.self)
          #expect(text == "\(length)\n")
        }
      }
    }
  }

  @Test("a request fails if its stream has another length than announced, or throws")
  func wrongStreams() async throws {
    try await withOrigin { origin, bench in
      for announced in [Int64(5), 7] {
        let error = await failure { () throws(NetOptError) in
          let request = try NetOptRequest(
            .put, "https://api.test:\(origin.port)/upload",
            body: .stream(length: announced, Chunks([[1, 2, 3], [4, 5, 6]])))
          _ = try await bench.execute(request, origin.endpoints.map(\.address))
        }
        #expect(error?.code == .invalidRequest)
        #expect(error?.message.contains("the request announced \(announced)") == true)
      }
      let error = await failure { () throws(NetOptError) in
        let request = try NetOptRequest(
          .put, "https://api.test:\(origin.port)/upload", body: .stream(Chunks([[1]], thenFails: true)))
        _ = try await bench.execute(request, origin.endpoints.map(\.address))
      }
      #expect(error?.code == .sendFailed && error?.cause != nil)
      #expect(error?.message.contains("Broken") == true)
    }
  }
}

/// A sequence that yields its chunks one by one, and then ends or throws `Broken` (`thenFails`).
struct Chunks: AsyncSequence, Sendable {
  /// The error that the sequence throws after its chunks.
  struct Broken: Error {}

  private let chunks: [[UInt8]]
  private let thenFails: Bool

  init(_ chunks: [[UInt8]], thenFails: Bool = false) {
    self.chunks = chunks
    self.thenFails = thenFails
  }

  struct AsyncIterator: AsyncIteratorProtocol {
    /// The chunks that `next()` has not returned.
    var rest: ArraySlice<[UInt8]>
    let thenFails: Bool

    mutating func next() async throws -> [UInt8]? {
      if let chunk = rest.popFirst() { return chunk }
      if thenFails { throw Broken() }
      return nil
    }
  }

  func makeAsyncIterator() -> AsyncIterator { AsyncIterator(rest: chunks[...], thenFails: thenFails) }
}
