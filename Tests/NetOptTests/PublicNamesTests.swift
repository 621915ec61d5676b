import NetOptTestSupport
import TestTools
import Testing

/// Tests the names that netopt's modules make public, by compiling other programs that import these modules.
@Suite struct PublicNamesTests {
  /// Names that services and other libraries often give to their own types.
  private static let foreign = [
    "Request", "Response", "HTTPRequest", "HTTPResponse", "HTTPFields", "HTTPMethod", "Transport", "Origin",
    "Endpoint", "Resolver", "Reason", "Attempt", "Race", "Client",
  ]

  @Test("the unqualified names of a service's own types do not collide with netopt's")
  func collisions() async throws {
    // Declarations of these types in a module `Foreign`, and code that uses each name without its module.
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

  @Test("the signer and the verifier need no other import")
  func signingAlone() async throws {
    try await OutsidePackage.check(
      """
      import NetOptSigning

      func sign(_ signer: RequestSigner) throws(NetOptError) -> [HeaderField] {
        try signer.sign(SigningRequest(NetOptRequest(.get, url()), body: [])).headers
      }

      func url() -> HTTPURL { try! HTTPURL("https://api.example.com/") }
      """, in: try TemporaryDirectory.make("outside"))
  }

  @Test("the check fails for a colliding name and for a name that is not public")
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

  /// Compiles ReadmeExample.swift, which `ReadmeTests` compares with README.md.
  @Test("the example of README.md compiles in another package")
  func readme() async throws {
    try await OutsidePackage.check(
      try RepositoryFile.text("Tests/NetOptTests/ReadmeExample.swift"),
      in: try TemporaryDirectory.make("outside"))
  }

  @Test("a service's test with a stub transport and its own interceptor compiles")
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
