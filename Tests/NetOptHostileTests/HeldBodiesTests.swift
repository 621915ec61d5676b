import NetOpt
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// Tests that netopt frees the parts of bodies that libcurl holds back for paused transfers
/// (`EasyHandle.dropPiece`).
@Suite struct HeldBodiesTests {
  @Test("memory does not grow when a server cuts bodies that libcurl holds back")
  func cut() async throws {
    let server = try await HostileServer.shared.value
    var configuration = server.clientConfiguration
    configuration.connections.bodyBuffer = 1000
    var before = 0
    // In each round, the server cuts three bodies while libcurl holds back about 60 KB of each. If these
    // parts were not freed, the memory would grow by three times 60 KB in each round.
    for round in 0..<100 {
      // The first 10 rounds only warm up.
      if round == 10 { before = ProcessFootprint.allocatedBytes }
      let client = try NetOptClient(configuration)
      let host = "h2-together-cut-while-they-are-held-back--\(round).hostile.test"
      let requests = try (0..<4).map {
        try server.http2Request(.get, host, "/broken?q=\($0)", within: .seconds(20))
      }
      // The test does not read the bodies of these responses until the fourth response is complete.
      let held = requests[..<3].map { request in Task { try await client.execute(request) } }
      let whole = try await client.execute(requests[3])
      #expect(try await whole.body.collect(upTo: 100) == Array("answer 3".utf8))
      for response in held {
        await #expect(throws: NetOptError.self) {
          _ = try await response.value.body.collect(upTo: 1_000_000)
        }
      }
      // This also closes the client's connections.
      await client.shutdown()
    }
    #expect(ProcessFootprint.allocatedBytes - before < 1_000_000)
    #expect(server.newFaults().isEmpty)
  }
}
