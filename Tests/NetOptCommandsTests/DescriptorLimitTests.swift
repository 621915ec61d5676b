import NetOptTestSupport
import Testing

@testable import NetOptCommands

@Suite("A limit of open files that is too low is named") struct DescriptorLimitTests {
  @Test("the error names the limit of open files, whichever descriptor cannot be opened first")
  func isNamed() async throws {
    let server = try LoopbackServer(.raw { try $0.respond(200, text: "fine") })
    defer { server.stop() }
    let program = try InstalledProgram()
    // The number of limits at which the request succeeded.
    var answered = 0
    // The number of limits at which the program could not open a socket.
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
        // The output may lack a message from netopt. Then the limit was too low for the system or the runtime
        // to start the program.
        #expect(output.contains("open files"), "\(limit): \(output)")
      }
    }
    // At least one of the limits must suffice for a request, and at least one must keep the program from
    // opening a socket. Otherwise the test would prove nothing.
    #expect(answered > 0 && sockets > 0)
  }
}
