import NetOptTestSupport
import Testing

@testable import NetOptCommands

@Suite("A limit of open files that is too low is named") struct DescriptorLimitTests {
  @Test("the error names the limit of open files, whichever descriptor cannot be opened first")
  func isNamed() async throws {
    let server = try LoopbackServer(.raw { try $0.respond(200, text: "fine") })
    defer { server.stop() }
    let program = try InstalledProgram()
    var answered = 0
    var sockets = 0
    for limit in 6...32 {
      // env(1) runs the shell, and the shell runs the program.
      let limited = ["/bin/sh", "-c", "ulimit -n \(limit) && exec \"$@\"", "sh"]
      let (status, output) = try await program.run(
        ["get", "--no-direct", "--retry", "0", "--max-time", "10", "http://\(server.endpoint)/"], limited)
      if status == 0 {
        answered += 1
      } else if output.contains("no socket could be opened") {
        sockets += 1
        #expect(output.contains("Too many open files; raise the limit of open files"), "\(limit): \(output)")
      } else if output.contains("netopt: ") {
        // Without a message from netopt, the system or the runtime could not start the program.
        #expect(output.contains("open files"), "\(limit): \(output)")
      }
    }
    // The tested limits include some that suffice for a request and some at which the program cannot open a
    // socket.
    #expect(answered > 0 && sockets > 0)
  }
}
