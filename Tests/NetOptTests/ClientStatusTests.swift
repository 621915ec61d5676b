import FoundationEssentials
import NetOptCore
import NetOptRouting
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOpt

/// What a client says of its endpoints without sending anything.
@Suite struct ClientStatusTests {
  @Test("the status tells which endpoint is avoided, why and since when, in words and as JSON")
  func avoided() async throws {
    let lab = try StubLab([.expired, .respond(200)])
    let before = Date() - 1
    for _ in 0..<2 {
      _ = try await lab.client.execute(try lab.request { $0.options.connection = .fresh }).body.collect(
        upTo: 10)
    }
    let sent = lab.transport.received.count
    let status = lab.client.status()
    #expect(lab.transport.received.count == sent)
    let host = try #require(status.hosts.first)
    #expect(status.hosts.count == 1 && host.name == StubLab.host && host.port == 443)
    #expect(host.endpoints.map(\.address) == lab.addresses.reversed())
    let (good, bad) = (host.endpoints[0], host.endpoints[1])
    #expect(good.rank == 1 && good.state == .closed && good.avoidedSince == nil && good.excluded == nil)
    #expect(bad.rank == nil && bad.state == .quarantined && bad.excluded != nil)
    #expect(bad.lastFailure?.kind == .certificateExpired)
    let since = try #require(bad.avoidedSince)
    #expect(since > before && since <= status.date)
    #expect(try #require(bad.lastFailed) >= since.addingTimeInterval(-0.001))
    #expect(status.callsUnderWay == 0)
    let line = try #require(status.description.split(separator: "\n").first { $0.contains("\(bad.address)") })
    #expect(line.contains("quarantined") && line.contains("avoided since \(since.formatted(.iso8601))"))
    #expect(try await JSONSchema.faults(of: status.json, by: "status") == "")
    await lab.client.shutdown()
    #expect(lab.client.status().hosts.count == 1)
  }

  @Test("a client without a list has no hosts, and counts the calls that have not returned")
  func noList() async throws {
    let lab = try StubLab([.respond(200).taking(answer: .seconds(60))]) { $0.list = .none }
    let request = try lab.request { $0.options.routing = .pinned(lab.addresses[0]) }
    let call = Task { try await lab.client.execute(request) }
    try await wait(for: "the call") { lab.client.status().callsUnderWay == 1 }
    #expect(lab.client.status().hosts.isEmpty)
    #expect(try await JSONSchema.faults(of: lab.client.status().json, by: "status") == "")
    call.cancel()
    _ = await call.result
    #expect(lab.client.status().callsUnderWay == 0)
    await lab.client.shutdown()
  }
}
