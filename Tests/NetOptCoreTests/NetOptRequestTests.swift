import NetOptCore
import Testing

@Suite struct NetOptRequestTests {
  @Test("a request has the documented defaults")
  func defaultValues() throws {
    let request = try NetOptRequest(.get, "https://a.test/x")
    #expect(request.method == .get)
    #expect(request.url == (try HTTPURL("https://a.test/x")))
    #expect(request.headers.isEmpty)
    #expect(request.body.length == 0)
    #expect(request.options == RequestOptions())
    #expect(request.options.timeout == .seconds(60))
    #expect(request.options.verification == .full)
  }

  @Test("a request refuses a URL without a scheme")
  func badURL() {
    let error = #expect(throws: NetOptError.self) { try NetOptRequest(.post, "a.test") }
    #expect(error?.code == .invalidURL)
  }

  /// A method, header fields, and whether a request with both may be repeated.
  @Test(
    "a request may be repeated if its method is idempotent or it has idempotency keys, none empty",
    arguments: [
      (NetOptRequest.Method.get, [:], true), (.put, [:], true), (.delete, [:], true), (.post, [:], false),
      (.patch, [:], false),
      (.post, ["idempotency-KEY": "1"], true), (.post, ["Idempotency-Keys": "1"], false),
      (.post, ["Idempotency-Key": ""], false), (.post, ["Idempotency-Key": " \t"], false),
      (.post, ["Idempotency-Key": "\"\""], false), (.post, ["Idempotency-Key": " \"\" ;a=1"], false),
      (.post, ["Idempotency-Key": "1", "idempotency-key": ""], false), (.put, ["Idempotency-Key": ""], true),
      (.post, ["Idempotency-Key": "\"1\""], true), (.post, ["Idempotency-Key": "\"\"\""], false),
      (.post, ["Idempotency-Key": ","], false), (.post, ["Idempotency-Key": "é"], true),
    ] as [(NetOptRequest.Method, HeaderFields, Bool)])
  func mayBeRepeated(_ method: NetOptRequest.Method, _ headers: HeaderFields, _ expected: Bool) throws {
    #expect(try NetOptRequest(method, "https://a.test", headers: headers).mayBeRepeated == expected)
  }
}

/// A program may print or log a whole request. The texts that Swift then makes of the request (`dump`, string
/// interpolation) must not contain its secrets.
@Suite struct HTTPRequestDumpTests {
  @Test("no text of a request shows its credentials", arguments: 1...5 as ClosedRange<UInt64>)
  func dumps(_ seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    for _ in 0..<50 {
      // The secret ends with Z. A dump of the bytes of the body would contain 90, the value of this letter.
      let secret = String((0..<12).map { _ in "abcdefghijklmnop".randomElement(using: &random) ?? "a" }) + "Z"
      let field = ["Authorization", "Cookie", "X-Api-Key", "X-Custom"].randomElement(using: &random) ?? ""
      let parameter = ["token", "api_key", "sig"].randomElement(using: &random) ?? ""
      let request = try NetOptRequest(
        .post, "https://a.test/x?q=1&\(parameter)=\(secret)",
        headers: ["Accept": "*/*", field: "Bearer \(secret)"],
        body: .text(secret))
      var dumped = ""
      dump([request], to: &dumped)
      let optional: NetOptRequest? = request
      let texts = [dumped, "\(request)", String(reflecting: request), "\(optional as Any)", "\([request])"]
      for text in texts {
        #expect(!text.contains(secret), "seed \(seed): \(text)")
        #expect(text.contains("https://a.test/x?q=1&\(parameter)=[hidden]"))
      }
      #expect(dumped.contains(field) && !dumped.contains("90") && dumped.contains("POST"), "\(dumped)")
    }
  }
}

@Suite struct RequestBodyTests {
  private struct Failure: Error, Equatable {}

  /// Returns the chunks of a stream body; no chunks for a body from memory.
  private func chunks(of body: RequestBody) async throws -> [[UInt8]] {
    guard case .stream(_, _, let makeIterator) = body.source else { return [] }
    var chunks: [[UInt8]] = []
    var iterator = makeIterator(.sending)
    while let chunk = try await iterator.next() { chunks.append(chunk) }
    return chunks
  }

  @Test("a body from memory has a length and is not a stream")
  func memoryBody() {
    #expect(RequestBody.none.length == 0)
    #expect(RequestBody.bytes([1, 2, 3]).length == 3)
    #expect(RequestBody.text("é").length == 2)
    #expect(RequestBody.none.isRepeatable && RequestBody.bytes([]).isRepeatable)
    guard case .bytes(let bytes) = RequestBody.text("é").source else {
      Issue.record("text is not in memory")
      return
    }
    #expect(bytes == [0xc3, 0xa9])
  }

  @Test("a stream body gives the chunks of its sequence and has no length")
  func streamBody() async throws {
    let body = RequestBody.stream(
      AsyncStream<[UInt8]> {
        $0.yield([1])
        $0.yield([])
        $0.yield([2, 3])
        $0.finish()
      })
    #expect(!body.isRepeatable)
    #expect(body.length == nil)
    #expect(try await chunks(of: body) == [[1], [], [2, 3]])
  }

  @Test("a stream body has the length that the caller states")
  func statedLength() {
    #expect(RequestBody.stream(length: 7, AsyncStream<[UInt8]> { $0.finish() }).length == 7)
  }

  @Test("a stream body throws the error of its sequence")
  func streamFailure() async {
    let body = RequestBody.stream(
      AsyncThrowingStream<[UInt8], any Error> {
        $0.yield([1])
        $0.finish(throwing: Failure())
      })
    await #expect(throws: Failure()) { try await chunks(of: body) }
  }
}
