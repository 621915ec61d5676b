import FoundationEssentials
import Glibc
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// A disk cache whose thread the system cannot create.
@Suite struct DiskCacheThreadTests {
  @Test("a removal that cannot be queued is not lost", .timeLimit(.minutes(1)))
  func removalsWithoutThread() async throws {
    let directory = try TemporaryDirectory.make("no-threads")
    let program = try ChildProcess(
      try CacheWriter.path, [directory + "/cache", "removals"], in: directory)
    try await wait(for: "the program to end") { program.exitStatus() != nil }
    let output = try FileBytes.read(program.output, upTo: 1 << 20, as: "the output", in: .cache)
    #expect(String(decoding: output, as: UTF8.self) == "")
    #expect(program.exitStatus() == 0)
  }
}

/// The program `cache-writer`, which the build puts into the directory of the tests.
enum CacheWriter {
  static var path: String {
    get throws {
      let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
      return FileBytes.folder(of: tests) + "/cache-writer"
    }
  }
}
