import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@Suite struct TransportConformanceTests {
  @Test("the stub transport keeps each promise of a transport", arguments: TransportConformance.allCases)
  func stubKeepsPromises(_ promise: TransportConformance) async throws {
    try await promise.check { StubConformanceBench() }
  }

  @Test(
    "the stub transport keeps each promise of a transport over HTTP/1.1",
    arguments: TransportConformance.allCases)
  func stubKeepsPromisesOverHTTP1(_ promise: TransportConformance) async throws {
    try await promise.check { StubConformanceBench(version: .http1) }
  }

  /// Shows that each check can fail: the transport breaks every promise.
  @Test("a transport that does nothing fails every check", arguments: TransportConformance.allCases)
  func brokenTransport(_ promise: TransportConformance) async throws {
    await #expect(throws: (any Error).self) { try await promise.check { BrokenBench() } }
  }
}

/// A bench whose transport reports success for every call, but sends nothing. The bench has no servers, so no
/// request arrives, and its waits return at once. `ConformanceBench` describes the members.
private struct BrokenBench: ConformanceBench {
  struct NothingTransport: Transport {
    func execute(
      _ request: NetOptRequest, along plan: RoutePlan, in context: CallContext
    ) async throws(NetOptError) -> NetOptResponse {
      NetOptResponse(
        url: request.url, head: ResponseHead(status: 200), body: ResponseBody([1]),
        route: RouteReport(plan: plan, legs: []))
    }

    func connect(
      to endpoint: IPEndpoint, of origin: Origin, within limit: Duration, keep: Bool
    ) async throws(LegError) -> ConnectReport {
      ConnectReport(connect: .zero)
    }

    func shutdown() async {}
  }

  let transport: any Transport = NothingTransport()
  let origin = Origin(.https, host: "conformance.example")
  let unknownOrigin = Origin(.https, host: "unknown.example")

  func address(_ behaviour: ConformanceBehaviour) -> IPAddress { .loopback }
  func path(_ resource: ConformanceResource) -> String { "/" }
  func received(_ mark: String, expected: Int) async throws -> [IPAddress] { [] }
  func waitForRequest(_ mark: String) async throws {}
  func waitForAttempt() async throws {}
  func stop() async {}
}
