import NetOptCore
import Testing

/// The value semantics of requests and responses, which store their properties by reference.
@Suite struct SharedStorageTests {
  @Test("a change of a copied request does not change the original")
  func requestCopy() throws {
    let original = try NetOptRequest(.get, "https://a.example/", headers: ["X": "1"], body: .text("a"))
    var copy = original
    copy.method = .post
    copy.url = try HTTPURL("https://b.example/")
    copy.headers["X"] = "2"
    copy.body = .none
    copy.options.maxRedirects = 3
    #expect(original.method == .get && copy.method == .post)
    #expect(original.url.origin.host == "a.example" && copy.url.origin.host == "b.example")
    #expect(original.headers["X"] == "1" && copy.headers["X"] == "2")
    #expect(original.body.length == 1 && copy.body.length == 0)
    #expect(original.options.maxRedirects == 10 && copy.options.maxRedirects == 3)
  }

  @Test("a change of a copied response does not change the original")
  func responseCopy() async throws {
    let url = try HTTPURL("https://a.example/")
    let plan = RoutePlan(origin: url.origin, policy: .fastest, legs: [RoutePlan.Leg(.dns, source: .dns)])
    let original = NetOptResponse(
      url: url, head: ResponseHead(status: 200), body: ResponseBody(Array("a".utf8)),
      route: RouteReport(plan: plan, legs: []))
    var copy = original
    copy.url = try HTTPURL("https://b.example/")
    copy.head = ResponseHead(status: 404)
    copy.body = ResponseBody([])
    copy.route.isShared = true
    copy.reused = true
    copy.tls = TLSReport(verified: true)
    copy.remote = IPAddress("127.0.0.1").map { IPEndpoint($0, port: 1) }
    copy.attempts = 2
    #expect(original.url == url && copy.url != url)
    #expect(original.status == 200 && copy.status == 404)
    #expect(!original.route.isShared && copy.route.isShared)
    #expect(!original.reused && copy.reused)
    #expect(original.tls == nil && copy.tls != nil)
    #expect(original.remote == nil && copy.remote != nil)
    #expect(original.attempts == 1 && copy.attempts == 2)
    #expect(try await original.body.collect(upTo: 1) == Array("a".utf8))
  }
}
