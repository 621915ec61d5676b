import NetOpt
import NetOptCore
import NetOptTestSupport
import Testing

@testable import FaultMatrix

/// A server allows one stream at a time (SETTINGS_MAX_CONCURRENT_STREAMS), and the client learns this limit
/// only after it has sent two requests, as over a long path. A client may send requests before the
/// first SETTINGS of the server arrives (RFC 9113, section 3.4).
@Suite struct LateLimitTests {
  @Test(
    "a lone server whose limit of one stream arrives late answers all 100 requests, each once",
    arguments: [Traffic.post, .up])
  func lone(_ traffic: Traffic) async throws {
    let site = try await Site(isWired: false)
    defer { site.stop() }
    let origin = site.origins[0]
    try await origin.begin("late-limit")
    let fault = try #require(Fault.all.first { $0.name == "max streams 1" })
    var configuration = site.configuration(for: fault)
    // The client would learn the limit from the connection of a probe, before it sends requests.
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
    // If the server refused no request, the client sent only one before the limit came, and the test shows
    // nothing.
    #expect(!arrivals.refused.isEmpty)
  }

  /// Sends a request over HTTP/2 to one server.
  ///
  /// - Returns: what is wrong with the result; `nil` for the right response.
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
