import NetOptCore
import NetOptRouting
import NetOptTestSupport
import Testing

@testable import NetOpt

/// Which requests start the background probes. A client sends background probes only while requests use the
/// list.
@Suite struct BackgroundProbesUseTests {
  @Test("a request along the list starts the background work")
  func listedRequest() async throws {
    let lab = try StubLab([.respond(200)])
    #expect(!lab.client.backgroundProbes.isActive)
    _ = try await lab.client.execute(try lab.request())
    #expect(lab.client.backgroundProbes.isActive)
    await lab.client.shutdown()
  }

  /// A request that is pinned to an address or routed by DNS does not use the list.
  @Test("a request that is pinned or routed by DNS does not start the background work")
  func directedRequest() async throws {
    let lab = try StubLab([.respond(200), .respond(200)])
    for routing in [RequestOptions.Routing.pinned(lab.addresses[1]), .dns] {
      let request = try lab.request { $0.options.routing = routing }
      _ = try? await lab.client.execute(request)
      #expect(!lab.client.backgroundProbes.isActive, "\(routing)")
    }
    #expect(lab.receivers.first == lab.addresses[1])
    await lab.client.shutdown()
  }
}
