import NetOptCore
import NetOptTestSupport
import Testing

/// Responses without a request. The server's kernel holds back such a response until the client acknowledges
/// the response before it (Nagle's algorithm, RFC 896).
@Suite struct HeldBackAnswerTests {
  @Test("an unrequested response 3 ms after a valid one is not taken for the next response")
  func answerTooMany() async throws {
    let server = try LoopbackServer(
      .raw { exchange in
        let target = exchange.request.target
        try exchange.respond(200, text: target)
        guard target.hasSuffix("3") else { return }
        try exchange.wait(.milliseconds(3))
        try exchange.respond(200, text: "forged")
      })
    let bench = try await TransportBench()
    for number in 0..<80 {
      let request = try NetOptRequest(.get, "http://a.test:\(server.endpoint.port)/\(number)")
      let response = try await bench.execute(request, [.loopback])
      let text = String(decoding: try await response.body.collect(upTo: 100), as: UTF8.self)
      #expect(text == "/\(number)")
      // Services often pause this long between two requests. Linux delays an acknowledgement by up to 40 ms
      // and sends it with the next request. The forged response would then arrive as the response to that
      // request. The test passes because netopt acknowledges the end of each response at once.
      try await Task.sleep(for: .milliseconds(15))
    }
    await bench.end()
    server.stop()
  }
}
