import NetOpt
import NetOptCore
import NetOptTestSupport
import Testing

/// Servers that answer before they have read the body of a request. Over HTTP/2, nginx then leaves the stream
/// open and permits no further bytes of the body. RFC 9113, section 8.1, would allow it to reset the stream.
/// libcurl waits until it can send the rest of the body or the stream is reset. The call must not wait that
/// long.
@Suite struct EarlyAnswerTests {
  @Test(
    "the caller gets a response that the server sends before it has read the request's body",
    arguments: [RequestOptions.Version.http2, .http1], [10, 60_000, 200_000, 900_000])
  func bodies(version: RequestOptions.Version, size: Int) async throws {
    let fleet = try await Fleet(1, directives: #"location /early { return 200 "$request_uri"; }"#)
    defer { fleet.stop() }
    let client = try await fleet.client()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<6 {
        var request = try fleet.request(.post, "/early?q=\(number)")
        request.body = .bytes([UInt8](repeating: 0x61, count: size))
        request.options.version = version
        request.options.timeout = .seconds(20)
        request.options.maxAttempts = 1
        let sent = request
        group.addTask {
          let response = try await client.execute(sent)
          let text = String(decoding: try await response.body.collect(upTo: 1000), as: UTF8.self)
          #expect(response.status == 200 && text == "/early?q=\(number)")
        }
      }
      try await group.waitForAll()
    }
    await client.shutdown()
  }
}
