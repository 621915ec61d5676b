import NetOptCore
import Testing

@Suite struct NetOptResponseTests {
  @Test("a response gives the values of its head and the timings of its body")
  func headAndTimings() async throws {
    var timings = Timings()
    timings.queue = .milliseconds(1)
    let url = try HTTPURL("https://a.test/")
    let plan = RoutePlan(origin: url.origin, policy: .fastest, legs: [.init(.dns, source: .dns)])
    let response = NetOptResponse(
      url: url, head: ResponseHead(status: 404, version: .http2, fields: ["A": "1"]),
      body: ResponseBody([1], timings: timings), route: RouteReport(plan: plan, legs: []))
    #expect(response.status == 404)
    #expect(response.version == .http2)
    #expect(response.headers["a"] == "1")
    #expect(response.timings == timings)
    #expect(response.attempts == 1)
    #expect(!response.reused)
    #expect(response.tls == nil && response.remote == nil)
    #expect(try await response.body.collect(upTo: 1) == [1])
  }

  @Test("a response made by an interceptor has no attempts and no route")
  func canned() async throws {
    let url = try HTTPURL("https://a.test/")
    let response = NetOptResponse(url: url, status: 204, headers: ["A": "1"], body: ResponseBody([1]))
    #expect(response.status == 204 && response.attempts == 0 && response.headers["a"] == "1")
    #expect(response.route.plan.policy == .interceptor && response.route.legs.isEmpty)
    #expect(response.route.candidates.isEmpty && response.route.fallback == nil)
    #expect(try await response.body.collect(upTo: 1) == [1])
  }

  @Test("the total and the time to the first byte are sums of the phases")
  func timingSums() {
    var timings = Timings()
    #expect(timings.total == .zero)
    // Each phase is a different power of two, so a phase that is missing or added twice changes the sum.
    timings.queue = .milliseconds(1)
    timings.dns = .milliseconds(2)
    timings.connect = .milliseconds(4)
    timings.tls = .milliseconds(8)
    timings.send = .milliseconds(16)
    timings.wait = .milliseconds(32)
    timings.transfer = .milliseconds(64)
    #expect(timings.total == .milliseconds(127))
    #expect(timings.timeToFirstByte == .milliseconds(63))
  }

  @Test("a connection is ready after the TCP connect and the TLS handshake")
  func readyTime() {
    #expect(ConnectReport(connect: .milliseconds(3)).ready == .milliseconds(3))
    #expect(ConnectReport(connect: .milliseconds(3), tls: .milliseconds(4)).ready == .milliseconds(7))
  }
}
