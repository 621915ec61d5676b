import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptSigning

/// Runs the examples of docs/signing.md.
@Suite struct SigningDocumentTests {
  /// The first code block in a language.
  private func example(_ language: String) throws -> String {
    let document = try RepositoryFile.text("docs/signing.md")
    let start = try #require(document.firstRange(of: "```\(language)\n"))
    let end = try #require(document[start.upperBound...].firstRange(of: "\n```"))
    return String(document[start.upperBound..<end.lowerBound])
  }

  @Test(
    "the examples in docs/signing.md print the golden signature",
    arguments: [("python", "/usr/bin/python3"), ("sh", "/bin/sh")])
  func examples(_ language: String, _ program: String) async throws {
    let directory = try TemporaryDirectory.make("example")
    let child = try ChildProcess(program, ["-c", try example(language)], in: directory)
    try await wait(for: "the example to end", within: .seconds(30)) { child.exitStatus() != nil }
    let bytes = try FileBytes.read(child.output, upTo: 1 << 20, as: "the test's", in: .list)
    let output = String(decoding: bytes, as: UTF8.self)
    #expect(output == GoldenVectorTests.signature + "\n")
  }

  /// Some of the requests have invalid UTF-8 in percent-encoding, or unusual ports. For each request, the
  /// example must make the same signature as netopt, or refuse the request if netopt refuses it.
  @Test("the Python example in docs/signing.md agrees with netopt1 on random requests")
  func pythonExample() async throws {
    let key = SigningKey(id: "app1.v2", secret: Array("s".utf8), salt: "t", schemes: [.netopt1])
    let nonce = "AAECAwQFBgcICQoLDA0ODw"
    let parts = [
      "a", "B", "1", "~", "+", "%20", "%2f", "%FF", "%e9", "é", "日", "*", "=", "&", "%zz", "%", ".", "//",
      ";", "%3B", "#", "%23", "\\", "%5C",
    ]
    var random = SplitMix64(seed: 5)
    var lines: [String] = []
    var wanted: [String] = []
    for _ in 0..<600 {
      let text = (0..<random.below(8)).map { _ in parts.randomElement(using: &random) ?? "" }.joined()
      let path = "/" + (Bool.random(using: &random) ? text : "a")
      let query = Bool.random(using: &random) ? String(text.reversed()) : text
      let authority = ["API.test", "api.test:443", "api.test:", "api.test:80", "[2001:DB8::1]:443"]
        .randomElement(using: &random)
      let request = SigningRequest(
        method: "GET", scheme: .https, authority: authority ?? "", path: path, query: query, headers: [:],
        body: [])
      lines.append("https://\(authority ?? "")\(path)?\(query)")
      do throws(SigningFault) {
        let signed = try NetOpt1().sign(
          request, with: key, at: SigningMoment(now: 1_700_000_000, nonce: nonce))
        wanted.append(signed.signature)
      } catch {
        #expect(error.reason == .malformedRequest)
        wanted.append("refused")
      }
    }
    let directory = try TemporaryDirectory.make("example")
    let example = try example("python")
    // The functions of the example without its last part, which prints the golden signature.
    let end = try #require(example.firstRange(of: "\nprint("))
    let program =
      example[..<end.lowerBound] + """

        import sys
        for url in open(sys.argv[1], encoding="utf-8").read().splitlines():
            try:
                print(signature(b"s", b"t", "app1.v2", 1700000000, "\(nonce)", "GET", url, {}, b""))
            except ValueError:
                print("refused")
        """
    let input = "\(directory)/urls"
    try TextFile.write(lines.joined(separator: "\n") + "\n", to: input)
    let child = try ChildProcess("/usr/bin/python3", ["-c", String(program), input], in: directory)
    try await wait(for: "the example to end", within: .seconds(30)) { child.exitStatus() != nil }
    let printed = TextFile.read(child.output).split(separator: "\n").map { String($0) }
    #expect(printed.count == lines.count, "\(printed.last ?? "")")
    for (line, (printed, wanted)) in zip(lines, zip(printed, wanted)) {
      #expect(printed == wanted, "\(line)")
    }
    #expect(Set(wanted).count > 100 && wanted.contains("refused"))
  }

  @Test("docs/signing.md names each signer mistake and each scheme")
  func namesInDocument() throws {
    let document = try RepositoryFile.text("docs/signing.md")
    for mutation in SignerMistake.allCases {
      #expect(document.contains("`\(mutation.rawValue)`"), "\(mutation.rawValue)")
    }
    for scheme in SchemeName.allCases { #expect(document.contains("`\(scheme.rawValue)`")) }
  }
}
