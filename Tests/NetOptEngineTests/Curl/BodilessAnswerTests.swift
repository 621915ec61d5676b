import NetOptCore
import NetOptTestSupport
import Testing

@testable import NetOptEngine

/// HTTP/1 responses without a body, or with an ambiguous end. A faulty server may send a body after such a
/// response. The client must not take that body for the response to the next request, so it does not always
/// reuse the connection.
@Suite struct BodilessAnswerTests {
  /// A method, the response to it, and whether the next request reuses the connection at once.
  private static let answers: [(NetOptRequest.Method, String, Bool)] = [
    (.head, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n", false),
    (.head, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", false),
    (.head, "HTTP/1.1 404 Not Found\r\n\r\n", false),
    (.head, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true),
    (.get, "HTTP/1.1 304 Not Modified\r\nContent-Length: 6\r\n\r\n", false),
    (.get, "HTTP/1.1 304 Not Modified\r\n\r\n", true),
    (.post, "HTTP/1.1 204 No Content\r\nContent-Length: 6\r\n\r\n", false),
    (.post, "HTTP/1.1 204 No Content\r\n\r\n", true),
    (.get, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true),
    (.get, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nanswer", true),
    (.get, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", true),
    (.get, "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false),
  ]

  /// Starts a server that keeps connections open. Its response to `/next` says whether this is the first
  /// request on the connection: the body is `brand` and a line feed for the first request, and `reused` for a
  /// later one. Both have 6 bytes. The response to any other request is `answer`.
  private func server(_ answer: String) throws -> LoopbackServer {
    try LoopbackServer(
      .raw { exchange in
        guard exchange.request.target == "/next" else { return try exchange.write(answer) }
        let isUsed = exchange.request.number > 1
        try exchange.write(
          "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n" + (isUsed ? "reused" : "brand\n"))
      })
  }

  @Test(
    "the next request reuses the connection unless a body may still follow the response",
    arguments: answers.indices)
  func nextConnection(_ index: Int) async throws {
    let (method, answer, isReused) = Self.answers[index]
    let server = try server(answer)
    defer { server.stop() }
    let bench = try await TransportBench()
    let url = "http://api.test:\(server.endpoint.port)"
    let first = try await bench.execute(try NetOptRequest(method, "\(url)/first"), [server.endpoint.address])
    _ = try await first.body.collect(upTo: 100)
    let next = try await bench.execute(try NetOptRequest(.get, "\(url)/next"), [server.endpoint.address])
    let text = String(decoding: try await next.body.collect(upTo: 100), as: UTF8.self)
    #expect(next.reused == isReused)
    #expect(server.requests.map(\.connection) == (isReused ? [1, 1] : [1, 2]), "\(text)")
    await bench.end()
  }

  /// The response to HEAD announces a body of 6 bytes. In case the server sends this body, the client does
  /// not use the connection for 100 ms (`LiveConnection.quietTime`). After this time it no longer expects the
  /// body.
  @Test("a connection is reused once nothing has followed a HEAD response for the quiet time")
  func reuseAfterQuietTime() async throws {
    let server = try server(Self.answers[0].1)
    defer { server.stop() }
    let bench = try await TransportBench()
    let url = "http://api.test:\(server.endpoint.port)"
    _ = try await bench.execute(try NetOptRequest(.head, "\(url)/first"), [server.endpoint.address])
    // The test is about this time, so it sleeps.
    try await Task.sleep(for: LiveConnection.quietTime + .milliseconds(1))
    let next = try await bench.execute(try NetOptRequest(.get, "\(url)/next"), [server.endpoint.address])
    #expect(next.reused)
    #expect(try await next.body.collect(upTo: 100) == Array("reused".utf8))
    await bench.end()
  }
}
