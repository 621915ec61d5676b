import NetOpt
import NetOptCore
import NetOptTestSupport
import Testing

@testable import FaultMatrix

/// A server whose stream limit arrives one round trip after the first requests were sent, as over a long path
/// (RFC 9113, section 3.4).
@Suite struct LateLimitTests {
  @Test(
    "a lone server whose limit of one stream arrives late answers all 100 requests, each once",
    arguments: [Traffic.post, .up])
  func lone(_ traffic: Traffic) async throws {
    let site = try await Site(isWired: false)
    defer { site.stop() }
    let origin = site.origins[0]
    try await origin.begin("max-streams-1")
    let fault = try #require(Fault.all.first { $0.name == "max streams 1" })
    var configuration = site.configuration(for: fault)
    // The connection of a probe would learn the limit.
    configuration.probing.atStart = false
    configuration.probing.inBackground = false
    let client = try NetOptClient(configuration)
    let faults = await withTaskGroup(of: String?.self) { group in
      for number in 0..<100 {
        group.addTask { await Self.send(traffic, "\(number)", to: origin, of: site, by: client) }
      }
      return await group.reduce(into: [String]()) { if let fault = $1 { $0.append(fault) } }
    }
    #expect(faults.isEmpty, "\(faults.count): \(faults.prefix(3))")
    await client.shutdown()
    let arrivals = try site.takeArrivals()
    #expect(arrivals.processed == Dictionary(uniqueKeysWithValues: (0..<100).map { ("\($0)", 1) }))
    // No refusal would mean that the limit arrived in time.
    #expect(!arrivals.refused.isEmpty)
  }

  private static func send(
    _ traffic: Traffic, _ id: String, to origin: FaultyOrigin, of site: Site, by client: NetOptClient
  ) async -> String? {
    do throws(NetOptError) {
      var request = try NetOptRequest(.post, site.url(traffic, id))
      request.body = traffic.body(of: id)
      request.options.routing = .pinned(origin.address)
      request.options.version = .http2
      let response = try await client.execute(request)
      let right = Content.answer(to: id, traffic)
      let body = try await response.body.collect(upTo: right.count + 1)
      return body == right && response.headers["x-id"] == id ? nil : "\(id) has the answer \(response.status)"
    } catch {
      return "\(error)"
    }
  }
}
