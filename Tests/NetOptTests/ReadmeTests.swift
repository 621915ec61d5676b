import NetOptTestSupport
import TestTools
import Testing

@Suite struct ReadmeTests {
  /// The example in README.md is the one that is compiled with these tests.
  @Test("the example in README.md is the one in ReadmeExample.swift")
  func readmeExample() throws {
    let readme = try RepositoryFile.text("README.md")
    let start = try #require(readme.firstRange(of: "```swift\n")?.upperBound)
    let end = try #require(readme[start...].firstRange(of: "```")?.lowerBound)
    let compiled = try RepositoryFile.text("Tests/NetOptTests/ReadmeExample.swift")
    #expect(compiled.hasSuffix("\n" + readme[start..<end]))
  }

  @Test("every make target that README.md names is in the Makefile")
  func makeTargets() throws {
    let makefile = try RepositoryFile.text("Makefile")
    let named = try RepositoryFile.text("README.md").matches(of: /make ([a-z]+)/).map { String($0.output.1) }
    #expect(named.count >= 4)
    for target in named { #expect(makefile.contains("\n\(target): "), "make \(target)") }
  }
}
