import NetOptCore
import NetOptRouting
import NetOptTestSupport
import Testing

@testable import NetOpt

/// Which requests are a use of the list, for which something is done beside them.
@Suite struct UpkeepUseTests {
  @Test func aRequestAlongTheListIs() async throws {
    let lab = try StubLab([.respond(200)])
    #expect(!lab.client.upkeep.hasBegun)
    _ = try await lab.client.execute(try lab.request())
    #expect(lab.client.upkeep.hasBegun)
    await lab.client.shutdown()
  }

  /// Nothing is probed for a request that goes where it was told to.
  @Test func aRequestThatKnowsItsWayIsNot() async throws {
    let lab = try StubLab([.respond(200), .respond(200)])
    for routing in [RequestOptions.Routing.pinned(lab.addresses[1]), .dns] {
      let request = try lab.request { $0.options.routing = routing }
      _ = try? await lab.client.execute(request)
      #expect(!lab.client.upkeep.hasBegun, "\(routing)")
    }
    #expect(lab.receivers.first == lab.addresses[1])
    await lab.client.shutdown()
  }
}
