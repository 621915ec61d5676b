import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// Tests that run the commands of docs/signing.md in a shell, as a reader would.
@Suite struct SigningDocumentCommandsTests {
  /// Runs a shell script in a directory and returns its output. The program is in the script's `PATH` as
  /// `netopt`.
  private func run(_ script: String, in directory: String) async throws -> String {
    let program = try Files.program
    let folder = program.dropLast("/netopt".count)
    let child = try ChildProcess(
      "/bin/sh", ["-c", "cd '\(directory)' && PATH='\(folder)':$PATH && \(script)"],
      in: try TemporaryDirectory.make("shell"))
    try await wait(for: "the command to end", within: .seconds(60)) { child.exitStatus() != nil }
    let output = try Files.read(child.output)
    #expect(child.exitStatus() == 0, "\(script): \(output)")
    return output
  }

  @Test("the first commands of docs/signing.md create a key, sign a request and verify it")
  func firstCommands() async throws {
    let document = try RepositoryFile.text("docs/signing.md")
    let start = try #require(document.firstRange(of: "```shell\n"))
    let end = try #require(document[start.upperBound...].firstRange(of: "\n```"))
    let commands = document[start.upperBound..<end.lowerBound].split(separator: "\n").map(String.init)
    #expect(
      commands.map { $0.split(separator: " ").prefix(2).joined(separator: " ") } == [
        "netopt keys", "netopt sign", "netopt verify",
      ])
    let directory = try TemporaryDirectory.make("signing-document")
    _ = try await run(commands[0], in: directory)
    let field = try await run(commands[1], in: directory)
    #expect(field.hasPrefix("Authorization: NETOPT1-HMAC-SHA256 keyid=app1.v1,"))
    try Files.write(
      "POST /user/search HTTP/1.1\nHost: api.example.com\nContent-Type: application/json\n\(field)\n"
        + #"{"hello": "world"}"#, to: "\(directory)/request.txt")
    #expect(
      try await run(commands[2], in: directory).hasPrefix("valid: netopt1, key app1.v1, assurance strong\n"))
  }
}
