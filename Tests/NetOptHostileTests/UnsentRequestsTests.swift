import NetOpt
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// Requests that reach their deadline before libcurl could send them. They must leave no state that affects
/// other requests.
@Suite struct UnsentRequestsTests {
  /// The cases of the two scenarios that the test uses. `HostileServerTests` checks that every scenario has a
  /// case.
  static let cases: [HostileCase] = .h2(.fails(as: .slow, ["deaf"]), .answers(["slow"]))

  /// A request over HTTP/2 to the host of a scenario.
  ///
  /// - Parameters:
  ///   - host: the name of the scenario without "h2-".
  ///   - question: the number of the request.
  private func request(
    _ method: NetOptRequest.Method, _ host: String, _ question: Int, within timeout: Duration,
    _ server: HostileServer
  ) throws -> NetOptRequest {
    try server.http2Request(
      method, "h2-\(host)--unsent.hostile.test", "/broken?q=\(question)", within: timeout)
  }

  /// One host stops reading, until the socket is full and libcurl cannot send further requests. These
  /// requests reach their deadline. Their easy handles then serve requests to another host, while the first
  /// host reads again.
  @Test("requests that time out unsent at one server do not affect requests to another")
  func unsentRequests() async throws {
    let server = try await HostileServer.shared.value
    let client = try NetOptClient(server.clientConfiguration)
    let limit = Duration.seconds(2)
    // 24 MiB, more than the send buffer of the client and the receive buffer of the server hold together
    // (tcp(7)).
    var upload = try request(.post, "deaf", 0, within: .seconds(8), server)
    upload.body = .bytes([UInt8](repeating: 0x41, count: 24 << 20))
    let blocking = Task { [upload] in await Outcome(of: upload, by: client) }
    try await wait(for: "the server to stop reading") {
      try await server.received(by: "h2-deaf--unsent.hostile.test").count == 1
    }
    var random = SplitMix64(seed: 1)
    // A random value, which HPACK cannot compress much.
    let value = String(decoding: (0..<6000).map { _ in UInt8(0x21 + random.below(0x5e)) }, as: UTF8.self)
    let unsent = try (1...60).map { question in
      var request = try request(.get, "deaf", question, within: limit, server)
      for number in 0..<8 { request.headers.append(HeaderField("X-Field-\(number)", "\(question)\(value)")) }
      return Task { [request] in await Outcome(of: request, by: client) }
    }
    for (index, call) in unsent.enumerated() {
      let fault = await call.value.fault(.fails(.slow), for: index + 1)
      #expect(fault == nil)
    }
    let others = try (100..<160).map { question in
      // The timeout is long because the server also reads the 24 MiB upload at the same time.
      let request = try request(.get, "slow", question, within: .seconds(60), server)
      return Task { await Outcome(of: request, by: client) }
    }
    try await wait(for: "the other server to answer") {
      try await server.received(by: "h2-slow--unsent.hostile.test").count == others.count
    }
    #expect(try await server.release("h2-deaf--unsent.hostile.test") == 1)
    for (index, call) in others.enumerated() {
      let fault = await call.value.fault(.answers(.usual), for: 100 + index)
      #expect(fault == nil)
    }
    blocking.cancel()
    _ = await blocking.value
    #expect(server.newFaults().isEmpty)
    await client.shutdown()
  }
}
