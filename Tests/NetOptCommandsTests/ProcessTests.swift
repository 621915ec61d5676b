import Glibc
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCommands

/// The program as a process: what only a process has.
@Suite struct ProcessTests {
  private let directory: String

  init() throws { directory = try TemporaryDirectory.make("process") }

  private func start(_ program: String, _ arguments: [String]) throws -> ChildProcess {
    try ChildProcess(program, arguments, in: directory)
  }

  private func end(of child: ChildProcess) async throws -> Int32 {
    try await wait(for: "\(child.name) to end") { child.exitStatus() != nil }
    return try #require(child.exitStatus())
  }

  /// Runs a line of the shell in which `$0` is the program.
  private func shell(_ line: String) async throws -> (status: Int32, output: String) {
    let child = try start("/bin/sh", ["-c", line, try Files.program])
    return (try await end(of: child), try Files.read(child.output))
  }

  @Test func theExitCodeIsThatOfTheCommand() async throws {
    let result = try await shell("$0 gte; echo $?")
    #expect(
      result.output == "netopt: unknown command \"gte\"; did you mean \"get\"? (see netopt --help)\n64\n")
  }

  @Test(arguments: [(SIGINT, 130), (SIGTERM, 143)] as [(Int32, Int32)])
  func aSignalEndsItInOrder(signal: Int32, code: Int32) async throws {
    let pipe = directory + "/pipe"
    try #require(mkfifo(pipe, 0o600) == 0)
    let child = try start(try Files.program, ["iplist", "check", pipe])
    // Opening for writing succeeds when the program has opened the pipe for reading; nothing will come through it.
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

  @Test("authorities in a pipe are refused at once")
  func authoritiesInAPipe() async throws {
    let pipe = directory + "/authorities"
    try #require(mkfifo(pipe, 0o600) == 0)
    let child = try start(try Files.program, ["get", "-m", "2", "--cacert", pipe, "https://localhost:1/"])
    #expect(try await end(of: child) != 0)
    #expect(try Files.read(child.output).contains("is no regular file"))
  }

  /// Whatever is a pipe that nobody else opens, a signal ends the program.
  @Test(arguments: [
    ["get", "--iplist", "pipe"], ["get", "-d", "@pipe"], ["get", "-o", "pipe"], ["get", "--cacert", "pipe"],
    ["get", "--sign", "k", "--keys", "pipe"], ["bench", "-n1", "--html", "pipe"],
    ["fetch", "--jsonl", "--iplist", "pipe"],
    ["compare", "pipe"],
  ])
  func aPipeThatNobodyOpensHoldsNothingUp(_ arguments: [String]) async throws {
    try #require(mkfifo(directory + "/pipe", 0o600) == 0)
    let child = try start(
      "/bin/sh",
      ["-c", "cd '\(directory)'; exec \"$0\" \"$@\"", try Files.program] + arguments + ["http://127.0.0.1:9/"]
    )
    // proc(5): most likely it waits for the pipe then; whatever else it does, the signal has to end it.
    try await wait(for: "the program to sleep, or to end") {
      try child.exitStatus() != nil || Files.read("/proc/\(child.id)/stat").contains("(netopt) S")
    }
    child.send(SIGINT)
    let status = try await end(of: child)
    #expect(status == 130 << 8 || status & 0x7f == 0, "\(status)")
  }

  @Test func aReaderThatWentAwayEndsItQuietly() async throws {
    let pipe = directory + "/pipe"
    try #require(mkfifo(pipe, 0o600) == 0)
    let reading = open(pipe, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    try #require(reading >= 0)
    let line = "exec 3>'\(pipe)'; echo open; while [ -e '\(pipe)' ]; do :; done; $0 --help >&3; echo $?"
    let child = try start("/bin/sh", ["-c", line, try Files.program])
    try await wait(for: "the shell to open the pipe") { try Files.read(child.output) == "open\n" }
    close(reading)
    try #require(unlink(pipe) == 0)
    #expect(try await end(of: child) == 0)
    #expect(try Files.read(child.output) == "open\n141\n")
  }

  @Test func aFullDeviceIsAnError() async throws {
    let result = try await shell("$0 --help > /dev/full; echo $?")
    #expect(
      result.output
        == "netopt: cannot write to standard output: No space left on device; free some space or write elsewhere\n1\n"
    )
  }

  @Test func aClosedStreamIsAnError() async throws {
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
