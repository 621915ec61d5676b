import NetOptTestSupport
import TestTools
import Testing

/// What somebody else's program sees of netopt.
@Suite struct PublicNamesTests {
  /// Names that services and other libraries have for their own types.
  private static let foreign = [
    "Request", "Response", "HTTPRequest", "HTTPResponse", "HTTPFields", "HTTPMethod", "Transport", "Origin",
    "Endpoint", "Resolver", "Reason", "Attempt", "Race", "Client",
  ]

  @Test("the names of a service's own types, unqualified, are not netopt's")
  func collisions() async throws {
    let others = Self.foreign.map {
      "public struct \($0): Sendable { public init() {}; public let isForeign = true }"
    }
    let uses = Self.foreign.map { "  if !\($0)().isForeign { return false }" }
    try await OutsidePackage.check(
      """
      import Foreign
      import NetOpt
      import NetOptSigning

      func allAreForeign() -> Bool {
      \(uses.joined(separator: "\n"))
        return true
      }

      func both(_ client: NetOptClient, _ request: Request) async throws -> NetOptResponse? {
        try await client.execute(NetOptRequest(.get, "https://a.test/"))
      }
      """, beside: ["Foreign": others.joined(separator: "\n")],
      in: try TemporaryDirectory.make("outside"))
  }

  @Test("the check sees a collision, and what is not public")
  func counterproof() async throws {
    for source in ["let collides: NetOptClient = .init(isForeign: true)", "let hidden: RoutePlanner? = nil"] {
      await #expect(throws: TestSupportError.self) {
        try await OutsidePackage.check(
          "import Foreign\nimport NetOpt\n\(source)",
          beside: ["Foreign": "public struct NetOptClient { public init(isForeign: Bool) {} }"],
          in: try TemporaryDirectory.make("outside"))
      }
    }
  }

  @Test("README's example compiles in a program of its reader's")
  func readme() async throws {
    try await OutsidePackage.check(
      try RepositoryFile.text("Tests/NetOptTests/ReadmeExample.swift"),
      in: try TemporaryDirectory.make("outside"))
  }

  @Test("a service tests its own code against a stub, and its interceptors answer by themselves")
  func stubs() async throws {
    try await OutsidePackage.check(
      """
      import NetOpt
      import NetOptTestSupport

      struct Canned: Interceptor {
        func intercept(_ request: NetOptRequest, next: InterceptorChain) async throws(NetOptError) -> NetOptResponse {
          if request.url.path == "/canned" {
            return NetOptResponse(url: request.url, status: 200, headers: ["X-Call": "\\(next.callID)"], body: ResponseBody([0x6f, 0x6b]))
          }
          return try await next.proceed(request)
        }
      }

      func statusOfOurService() async throws -> Int {
        let address = IPAddress("192.0.2.1")!
        let clock = ManualTimeSource()
        let transport = StubTransport([address: .respond(204)], resolver: StubResolver("api.test", [address]), timeSource: clock)
        var configuration = ClientConfiguration()
        configuration.interceptors = [Canned()]
        configuration.list = .list(EndpointList(hosts: ["api.test": HostEntry(endpoints: [ListedEndpoint(address)])]))
        let client = try NetOptClient(configuration, transport: transport)
        let response = try await client.execute(NetOptRequest(.get, "https://api.test/"))
        for candidate in response.route.candidates { print(candidate.address, candidate.excluded?.description ?? "is in the plan") }
        await client.shutdown()
        return response.status
      }
      """, in: try TemporaryDirectory.make("outside"))
  }
}
