import NetOptTestSupport
import TestTools
import Testing

/// Tests of the code in the articles of the documentation (`make docs`).
@Suite struct ArticleTests {
  /// The names of the articles, without `.md`.
  static let articles = ["GettingStarted", "Routing", "Signing", "Caching", "Testing"]

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
        true
        ["/v1/oslo"] [192.0.2.1, 192.0.2.2]
        false
        receive-failed
        200

        """)
    let signing = try await OutsidePackage.run(
      try Self.program("Signing"), in: try TemporaryDirectory.make("article"))
    #expect(signing.contains("\ntrue ok \nfalse signature-mismatch\nplus-for-space\n"), "\(signing)")
  }

  @Test("the landing page links to every article")
  func landingPage() throws {
    let page = try RepositoryFile.text("docs/NetOpt.docc/NetOpt.md")
    for article in Self.articles { #expect(page.contains("<doc:\(article)>"), "\(article)") }
  }
}
