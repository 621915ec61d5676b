import Foundation
import Glibc
import NetOptTestSupport
import TestTools
import Testing

@Suite struct ChildProcessTests {
  private func isRunning(_ id: Int32) -> Bool { kill(id, 0) == 0 }

  @Test("stop ends a child process, with SIGKILL if it ignores SIGTERM") func stopEndsProcess() async throws {
    let directory = try TemporaryDirectory.make("child")
    let obedient = try ChildProcess("sleep", ["600"], in: directory)
    #expect(obedient.exitStatus() == nil)
    obedient.stop()
    #expect(obedient.exitStatus() == SIGTERM)
    #expect(!isRunning(obedient.id))

    let ready = "\(directory)/ready"
    let resisting = try ChildProcess(
      "sh", ["-c", "trap '' TERM; : > \(ready); exec sleep 600"], in: directory)
    try await wait(for: "the trap") { FileManager.default.fileExists(atPath: ready) }
    resisting.stop()
    #expect(resisting.exitStatus() == SIGKILL)
  }

  @Test("a child process ends when its object is released") func releaseEndsProcess() throws {
    let id = try ChildProcess("sleep", ["600"], in: TemporaryDirectory.make("child")).id
    #expect(!isRunning(id))
  }

  @Test func inheritsNoDescriptor() async throws {
    let child = try ChildProcess("ls", ["/proc/self/fd"], in: TemporaryDirectory.make("child"))
    try await wait(for: "ls to end") { child.exitStatus() != nil }
    let output = try String(contentsOfFile: child.output, encoding: .utf8)
    // The fourth descriptor is the directory that ls reads.
    #expect(output.split(separator: "\n").sorted() == ["0", "1", "2", "3"])
  }

  @Test("the error for a missing program names the script that installs it") func missingProgram() throws {
    let error = try #require(
      #expect(throws: TestSupportError.self) {
        try ChildProcess("no-such-program", [], in: TemporaryDirectory.make("child"))
      })
    #expect(error.description.contains("scripts/install-dependencies"))
  }
}
