import NetOptCore
import NetOptTestSupport
import Testing

@testable import NetOptSigning

/// Runs the examples of docs/signing.md.
@Suite struct SigningDocumentTests {
  private func example(_ language: String) throws -> String {
    let document = try RepositoryFile.text("docs/signing.md")
    let start = try #require(document.firstRange(of: "```\(language)\n"))
    let end = try #require(document[start.upperBound...].firstRange(of: "\n```"))
    return String(document[start.upperBound..<end.lowerBound])
  }

  @Test(arguments: [("python", "/usr/bin/python3"), ("sh", "/bin/sh")])
  func itPrintsTheSignature(_ language: String, _ program: String) async throws {
    let directory = try TemporaryDirectory.make("example")
    let child = try ChildProcess(program, ["-c", try example(language)], in: directory)
    try await wait(for: "the example to end", within: .seconds(30)) { child.exitStatus() != nil }
    let bytes = try FileBytes.read(child.output, upTo: 1 << 20, as: "the test's", in: .list)
    let output = String(decoding: bytes, as: UTF8.self)
    #expect(output == GoldenVectorTests.signature + "\n")
  }

  @Test func everyMistakeAndEveryReasonHasItsPlace() throws {
    let document = try RepositoryFile.text("docs/signing.md")
    for mutation in Mutation.allCases {
      #expect(document.contains("`\(mutation.rawValue)`"), "\(mutation.rawValue)")
    }
    for scheme in SchemeName.allCases { #expect(document.contains("`\(scheme.rawValue)`")) }
  }
}
