import NetOptCore
import NetOptTestSupport
import Testing

/// Answers that nobody asked for, and that the server's kernel holds back until the answer before them is acknowledged (RFC 896).
@Suite struct HeldBackAnswerTests {
  @Test("an answer too many that leaves the server 3 ms behind a right one is none to the next request")
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
      // As long as a service may think between two requests, and less than the 40 ms for which Linux delays acknowledgements.
      try await Task.sleep(for: .milliseconds(15))
    }
    await bench.end()
    server.stop()
  }
}
