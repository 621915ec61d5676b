import NetOpt
import NetOptTestSupport
import TestTools
import Testing

/// A body whose inside looks like frames. libcurl before 8.1.0 may read it as frames, when it forgets a part
/// of a TLS record (docs/adr/0025).
@Suite struct ForgottenRestTests {
  /// The case of the scenario in `http2_rests.py`.
  static let cases: [HostileCase] = .h2(.fails(as: .undecodable, ["forgotten-rest"]))

  @Test("the inside of a body that was given up does not answer the next request", arguments: 1...3)
  func forged(_ round: Int) async throws {
    let server = try await HostileServer.shared.value
    let host = "h2-forgotten-rest--\(round).hostile.test"
    var configuration = server.clientConfiguration
    configuration.cache = ClientConfiguration.Cache()
    let client = try NetOptClient(configuration)
    @Sendable func ask(_ target: String) async throws -> Outcome {
      await Outcome(of: try server.http2Request(.get, host, target, within: .seconds(10)), by: client)
    }
    let request = try server.http2Request(.get, host, "/broken?q=1", within: .seconds(10))
    let error = await #expect(throws: NetOptError.self) {
      _ = try await client.execute(request).body.collect(upTo: 1 << 20)
    }
    #expect(error?.code == .decodeFailed)
    // The next request finds the second record on the connection.
    try await wait(for: "the server to have sent all") {
      try await server.received(by: host).contains("sent")
    }
    for question in 2...3 {
      let fault = try await ask("/right?q=\(question)").fault(.answers(.usual), for: question)
      #expect(fault == nil)
    }
    #expect(server.newFaults().isEmpty)
    await client.shutdown()
  }
}
