import Glibc
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCommands

/// Tests that need the program as a process, such as exit codes and signals.
@Suite struct ProcessTests {
  private let directory: String

  init() throws { directory = try TemporaryDirectory.make("process") }

  private func start(_ program: String, _ arguments: [String]) throws -> ChildProcess {
    try ChildProcess(program, arguments, in: directory)
  }

  /// Waits for the end of a process. Returns its exit status in the form of waitpid(2): the exit code is in
  /// bits 8 to 15, and the number of the signal that ended the process is in bits 0 to 6.
  private func end(of child: ChildProcess) async throws -> Int32 {
    try await wait(for: "\(child.name) to end") { child.exitStatus() != nil }
    return try #require(child.exitStatus())
  }

  /// Runs a shell script in which `$0` is the path of the program. Returns the exit status in the form of
  /// waitpid(2), and the output.
  private func shell(_ line: String) async throws -> (status: Int32, output: String) {
    let child = try start("/bin/sh", ["-c", line, try Files.program])
    return (try await end(of: child), try Files.read(child.output))
  }

  @Test("the process exits with the exit code of the command")
  func exitCode() async throws {
    let result = try await shell("$0 gte; echo $?")
    #expect(
      result.output == "netopt: unknown command \"gte\"; did you mean \"get\"? (see netopt --help)\n64\n")
  }

  @Test(
    "a signal ends a read from a pipe with exit code 130 or 143",
    arguments: [(SIGINT, 130), (SIGTERM, 143)] as [(Int32, Int32)])
  func signalDuringRead(signal: Int32, code: Int32) async throws {
    let pipe = directory + "/pipe"
    try #require(mkfifo(pipe, 0o600) == 0)
    let child = try start(try Files.program, ["iplist", "check", pipe])
    // Opening for writing succeeds when the program has opened the pipe for reading. The test writes nothing
    // to the pipe.
    var writing: Int32 = -1
    try await wait(for: "the program to read") {
      writing = open(pipe, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
      return writing >= 0
    }
    defer { close(writing) }
    child.send(signal)
    #expect(try await end(of: child) == code << 8)
    #expect(try Files.read(child.output) == "")
  }

  @Test("get refuses a pipe as its --cacert file at once")
  func authoritiesInAPipe() async throws {
    let pipe = directory + "/authorities"
    try #require(mkfifo(pipe, 0o600) == 0)
    let child = try start(try Files.program, ["get", "-m", "2", "--cacert", pipe, "https://localhost:1/"])
    #expect(try await end(of: child) != 0)
    #expect(try Files.read(child.output).contains("is not a regular file"))
  }

  /// Each argument names a pipe that no other process opens.
  @Test(
    "SIGINT ends the program even if it waits for a pipe that no other process opens",
    arguments: [
      ["get", "--iplist", "pipe"], ["get", "-d", "@pipe"], ["get", "-o", "pipe"],
      ["get", "--cacert", "pipe"],
      ["get", "--sign", "k", "--keys", "pipe"], ["bench", "-n1", "--html", "pipe"],
      ["fetch", "--jsonl", "--iplist", "pipe"],
      ["compare", "pipe"],
    ])
  func unopenedPipe(_ arguments: [String]) async throws {
    try #require(mkfifo(directory + "/pipe", 0o600) == 0)
    let child = try start(
      "/bin/sh",
      ["-c", "cd '\(directory)'; exec \"$0\" \"$@\"", try Files.program] + arguments + ["http://127.0.0.1:9/"]
    )
    // In proc(5), `S` is the state of a sleeping process. The program then most likely waits for the pipe. It
    // may sleep for another reason, and a program that refuses the pipe ends by itself. In each case it must
    // end with an exit code.
    try await wait(for: "the program to sleep, or to end") {
      try child.exitStatus() != nil || Files.read("/proc/\(child.id)/stat").contains("(netopt) S")
    }
    child.send(SIGINT)
    let status = try await end(of: child)
    #expect(status & 0x7f == 0, "\(status)")
  }

  @Test("the process exits with code 141 and no message when the reader of its output is gone")
  func closedReader() async throws {
    let pipe = directory + "/pipe"
    try #require(mkfifo(pipe, 0o600) == 0)
    let reading = open(pipe, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    try #require(reading >= 0)
    // The shell opens the pipe and waits until its file is removed. By then, the test has closed the reading
    // end. Then the shell starts the program.
    let line = "exec 3>'\(pipe)'; echo open; while [ -e '\(pipe)' ]; do :; done; $0 --help >&3; echo $?"
    let child = try start("/bin/sh", ["-c", line, try Files.program])
    try await wait(for: "the shell to open the pipe") { try Files.read(child.output) == "open\n" }
    close(reading)
    try #require(unlink(pipe) == 0)
    #expect(try await end(of: child) == 0)
    #expect(try Files.read(child.output) == "open\n141\n")
  }

  @Test("the process reports a full device with exit code 1")
  func fullDevice() async throws {
    let result = try await shell("$0 --help > /dev/full; echo $?")
    #expect(
      result.output
        == "netopt: cannot write to standard output: No space left on device; free some space or write elsewhere\n1\n"
    )
  }

  @Test("the process reports a closed standard output with code 1 and a closed input with code 65")
  func closedStreams() async throws {
    let result = try await shell("$0 --help >&-; echo $?; $0 iplist check - <&-; echo $?")
    #expect(
      result.output == """
        netopt: cannot write to standard output: Bad file descriptor
        1
        netopt: cannot read standard input: Bad file descriptor
        65

        """)
  }
}
