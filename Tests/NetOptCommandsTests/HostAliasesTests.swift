import Glibc
import Testing

/// Tests that netopt disables the file of host aliases. By default, c-ares reads this file, which the
/// environment variable HOSTALIASES names (hostname(7)).
@Suite struct HostAliasesTests {
  @Test("netopt does not read the file that HOSTALIASES names")
  func notRead() async throws {
    let program = try InstalledProgram()
    // Opening a pipe without a writer blocks for ever (fifo(7)), so a program that reads the file hangs.
    let pipe = program.directory + "/aliases"
    #expect(mkfifo(pipe, 0o600) == 0)
    let run = try await program.run(
      ["get", "--no-direct", "-m", "2", "--dns-servers", "127.0.0.1:9", "http://aliasname/"],
      ["HOSTALIASES=\(pipe)"])
    // The program exits with an error code, because no DNS server answers. No signal ends it.
    #expect(run.status != 0 && run.status & 0x7f == 0)
    #expect(run.output.contains("aliasname"), "\(run.output)")
  }
}
