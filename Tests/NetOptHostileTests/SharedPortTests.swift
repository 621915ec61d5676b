import NetOpt
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// One port of a host speaks TLS and plain HTTP. `https://` and `http://` are two origins there (RFC 9110,
/// section 4.2.2).
@Suite struct SharedPortTests {
  @Test(
    "origins at one port that differ in the scheme share no connection, whatever the order of their requests",
    arguments: 1...8 as ClosedRange<UInt64>)
  func schemes(_ seed: UInt64) async throws {
    let server = try await HostileServer.shared.value
    let client = try NetOptClient(server.clientConfiguration)
    var random = SplitMix64(seed: seed)
    // For each connection, by its serial number (`X-Serial`), the schemes whose requests it carried.
    var schemes: [String: Set<String>] = [:]
    var question = 0
    for _ in 0..<20 {
      let batch = try (0...random.below(3)).map { _ in
        question += 1
        let scheme = random.below(2) == 0 ? "https" : "http"
        let host = "right--of-\(seed)-shared.hostile.test"
        var request = try server.request(
          random.below(2) == 0 ? .get : .post, host, "/right?q=\(question)", scheme: scheme,
          within: .seconds(20))
        request.options.version = random.below(2) == 0 ? .http1 : .automatic
        return (scheme, question, Task { [request] in await Outcome(of: request, by: client) })
      }
      for (scheme, question, call) in batch {
        let outcome = await call.value
        #expect(outcome.fault(.answers(.usual), for: question) == nil)
        schemes[try #require(outcome.head?.first("X-Serial")), default: []].insert(scheme)
      }
    }
    #expect(schemes.values.allSatisfy { $0.count == 1 }, "seed \(seed): \(schemes)")
    #expect(server.newFaults().isEmpty)
    await client.shutdown()
  }
}
