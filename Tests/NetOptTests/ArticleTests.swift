import NetOpt
import NetOptTestSupport
import TestTools
import Testing

/// Tests of the code in the articles of the documentation (`make docs`).
@Suite struct ArticleTests {
  /// The names of the articles, without `.md`.
  static let articles = [
    "GettingStarted", "Routing", "Signing", "Caching", "Interceptors", "Observing", "Foundation", "Testing",
  ]

  /// The articles with adapters for packages that are not here. `make adapters` compiles them.
  private static let adapters = ["HTTPTypes", "Logging", "SwiftMetrics", "DistributedTracing", "OpenAPI"]

  /// All Swift code of an article, from top to bottom. Together the code blocks must be one program.
  private static func program(_ article: String) throws -> String {
    let text = try RepositoryFile.text("docs/NetOpt.docc/\(article).md")
    let blocks = text.matches(of: /(?s)```swift\n(.*?)```/).map { String($0.output.1) }
    #expect(blocks.count >= 3, "\(article) shows too little code")
    return blocks.joined(separator: "\n")
  }

  @Test("the code of an article compiles in another package", arguments: articles)
  func compiles(_ article: String) async throws {
    try await OutsidePackage.check(
      try Self.program(article), isScript: true, in: try TemporaryDirectory.make("article"))
  }

  @Test("the programs of the articles on testing and signing print what the articles say")
  func runs() async throws {
    let testing = try await OutsidePackage.run(
      try Self.program("Testing"), in: try TemporaryDirectory.make("article"))
    #expect(
      testing == """
        false
        unexpected-status 503
        true
        ["/v1/oslo"] [192.0.2.1, 192.0.2.2]
        404
        true
        receive-failed
        200
        timeout

        """)
    let signing = try await OutsidePackage.run(
      try Self.program("Signing"), in: try TemporaryDirectory.make("article"))
    #expect(signing.contains("\ntrue ok \nfalse signature-mismatch\nplus-for-space\n"), "\(signing)")
  }

  private static let outcomes: [String: StubOutcome] = [
    ".refuse": .refuse, ".unreachable": .unreachable, ".silent": .silent, ".silentTLS": .silentTLS,
    ".brokenTLS": .brokenTLS, ".reset": .reset, ".certificate(names:)": .certificate(names: ["a.test"]),
    ".untrusted": .untrusted, ".expired": .expired, ".resetAfterSend": .resetAfterSend,
    ".noAnswer": .noAnswer,
  ]

  @Test("the table of outcomes in the article on testing is true", .timeLimit(.minutes(1)))
  func outcomes() async throws {
    let text = try RepositoryFile.text("docs/NetOpt.docc/Testing.md")
    var names: Set<String> = []
    for row in text.matches(of: /\| `(\.[A-Za-z:()]+)` \| [^|]+ \| (yes|no) \| `([a-z-]+)` \|/) {
      let (name, code) = (String(row.output.1), String(row.output.3))
      names.insert(name)
      let clock = ManualTimeSource()
      let transport = StubTransport(everyHost: try #require(Self.outcomes[name]), timeSource: clock)
      let client = try NetOptClient(transport: transport)
      var request = try NetOptRequest(.post, "https://api.test/")
      request.options.maxAttempts = 1
      let call = Task { [request] in try await client.execute(request).status }
      // Only outcomes without an answer wait for the clock.
      let mover = Task {
        while code == "timeout", !Task.isCancelled {
          if clock.sleepers > 0 { clock.advance(by: .seconds(1)) }
          await Task.yield()
        }
      }
      let error = await #expect(throws: NetOptError.self) { try await call.value }
      mover.cancel()
      #expect(error?.code.description == code, "\(name)")
      #expect(transport.received.isEmpty == (row.output.2 == "no"), "\(name)")
      await client.shutdown()
    }
    #expect(names == Set(Self.outcomes.keys))
  }

  @Test("the landing page links to every article")
  func landingPage() throws {
    let page = try RepositoryFile.text("docs/NetOpt.docc/NetOpt.md")
    for article in Self.articles + Self.adapters { #expect(page.contains("<doc:\(article)>"), "\(article)") }
  }
}
