import NetOpt
import NetOptCore
import NetOptLocking
import NetOptTestSupport
import TestTools
import Testing

/// Compressed request bodies. Python decompresses what the server received.
@Suite struct GzipBodyTests {
  private static let program = """
    import sys, gzip, hashlib
    for line in sys.stdin:
        print(hashlib.sha256(gzip.decompress(open(line[:-1], 'rb').read())).hexdigest())
    """

  @Test("Python finds the original bytes in compressed bodies from memory, files and streams")
  func peer() async throws {
    var random = SplitMix64(seed: 9)
    let folder = try TemporaryDirectory.make("gzip")
    let received = Locked<[(fields: HeaderFields, body: [UInt8])]>([])
    let server = try LoopbackServer(
      .raw { exchange in
        let body = try exchange.readBody()
        received.withLock { $0.append((exchange.request.fields, body)) }
        try exchange.respond(200)
      })
    defer { server.stop() }
    var configuration = ClientConfiguration()
    configuration.proxy = .none
    let client = try NetOptClient(configuration)
    var originals: [String] = []
    for number in 0..<60 {
      // Some bodies compress well, others do not.
      let spread = 1 + random.below(256)
      let bytes = (0..<Int(random.below([1, 100, 5000, 400_000][Int(random.below(4))]))).map { _ in
        UInt8(random.below(spread))
      }
      let path = "\(folder)/original-\(number)"
      try TextFile.write(bytes, to: path)
      originals.append(path)
      var body: RequestBody
      switch random.below(3) {
      case 0: body = .bytes(bytes)
      case 1: body = try .file(path)
      default:
        body = .stream(
          AsyncStream {
            for start in stride(from: 0, to: bytes.count, by: 1000) {
              $0.yield(Array(bytes[start..<min(start + 1000, bytes.count)]))
            }
            $0.finish()
          })
      }
      body.contentType = "text/x"
      let compressed = try RequestBody.gzip(body, level: 1 + Int(random.below(9)))
      #expect(compressed.isRepeatable == body.isRepeatable)
      let request = try NetOptRequest(.post, "http://\(server.endpoint)/", body: compressed)
      #expect(try await client.execute(request).status == 200)
    }
    await client.shutdown()
    let all = received.withLock { $0 }
    try #require(all.count == 60)
    var paths: [String] = []
    for (number, item) in all.enumerated() {
      #expect(item.fields["Content-Encoding"] == "gzip" && item.fields["Content-Type"] == "text/x")
      let path = "\(folder)/received-\(number)"
      try TextFile.write(item.body, to: path)
      paths.append(path)
    }
    let hashes = try await Python.output(of: Self.program, on: paths)
    let expected = try await Python.output(
      of: Self.program.replacing("gzip.decompress", with: ""), on: originals)
    #expect(hashes == expected)
  }

  @Test("another level and a second compression are refused")
  func refused() throws {
    let compressed = try RequestBody.gzip(.text("x"))
    let negative = RequestBody.stream(length: .min, AsyncStream<[UInt8]> { $0.finish() })
    for (body, level) in [(RequestBody.text("x"), 0), (.text("x"), 10), (compressed, 6), (negative, 6)] {
      let error = #expect(throws: NetOptError.self) { try RequestBody.gzip(body, level: level) }
      #expect(error?.code == .invalidRequest)
    }
  }
}
