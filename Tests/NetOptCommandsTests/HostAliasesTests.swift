import Glibc
import Testing

/// What c-ares would read of its own accord.
@Suite struct HostAliasesTests {
  @Test("the file that HOSTALIASES names is not read")
  func notRead() async throws {
    let program = try InstalledProgram()
    // Who opens a pipe to which nobody writes waits for ever (fifo(7)).
    let pipe = program.directory + "/aliases"
    #expect(mkfifo(pipe, 0o600) == 0)
    let run = try await program.run(
      ["get", "--no-direct", "-m", "2", "--dns-servers", "127.0.0.1:9", "http://aliasname/"],
      ["HOSTALIASES=\(pipe)"])
    #expect(run.status != 0 && run.status & 0x7f == 0)
    #expect(run.output.contains("aliasname"), "\(run.output)")
  }
}
