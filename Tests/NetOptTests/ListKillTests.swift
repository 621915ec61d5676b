import FoundationEssentials
import Glibc
import NetOptCore
import NetOptRouting
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOpt

/// Tests that a process may be killed at any moment while it replaces a list and its copy. A complete list
/// and a complete copy must be left, each with its signature.
///
/// `KILL_ROUNDS` sets the number of kills, by default 20.
@Suite struct ListKillTests {
  @Test("a client has a whole, signed list after a writer of lists was killed")
  func killedWriter() async throws {
    let directory = try TemporaryDirectory.make("killed")
    let signer = try ListSigner()
    let url = try HTTPURL("https://a.test/list.json")
    let path = "\(directory)/list.json"
    try replaceFile("\(directory)/key", Array(signer.keyFile.utf8))
    let first = listBytes(serial: 1, refresh: url.description)
    try replaceFile(path, first)
    try replaceFile(path + ".minisig", try signer.signature(of: first))
    let reader = ListReader(trustedKeys: [signer.publicKey], allowPrivateAddresses: true)
    let store = ListStore(directory: "\(directory)/state", for: reader)
    let rounds = ProcessInfo.processInfo.environment["KILL_ROUNDS"].flatMap { Int($0) } ?? 20
    var random = SplitMix64(seed: UInt64(rounds))
    // The serials of the list file and of the copy at the end of the last round.
    var last: (file: Int64, copy: Int64) = (1, 0)
    // The states in which the kills left the files: whether copy and file had the same serial, and whether
    // there was a signature in `.minisig.next`.
    var states: Set<String> = []
    for round in 1...rounds {
      let writer = try ChildProcess(
        try Self.writer, [directory, "\(directory)/key", url.description], in: directory)
      // The test first waits until the writer has saved a copy, because the time that the writer takes to
      // start depends on the machine. Then it kills the writer after at most 20 ms.
      let serial = last.copy
      try await wait(for: "the writer to write") {
        if writer.exitStatus() != nil {
          throw TestSupportError("the writer ended: \(try read(writer.output))")
        }
        return try self.serial(of: store.copy(of: url), reader) > serial
      }
      usleep(UInt32(random.below(20_000)))
      writer.send(SIGKILL)
      try await wait(for: "the writer to be dead") { writer.exitStatus() != nil }
      try #require(writer.exitStatus() == SIGKILL)

      let file = try reader.file(path, at: Date(), allowExpired: false)
      let copy = try #require(try store.copy(of: url))
      let copied = try self.serial(of: copy, reader)
      #expect(file.list.serial >= last.file && copied > last.copy, "round \(round)")
      // The writer saves the copy before it replaces the file.
      #expect(copied == file.list.serial || copied == file.list.serial + 1, "round \(round)")
      // The writer saves the record after the copy, so the record may be missing after the first kill.
      #expect(store.record(of: url).checked != nil || round == 1)
      last = (file.list.serial, copied)
      states.insert(
        "\(copied == file.list.serial)"
          + "\(try ListReader.signature(ListReader.nextSignatureFile(of: path)) != nil)")

      var configuration = ClientConfiguration()
      configuration.list = .file(path)
      configuration.trustedKeys = [signer.publicKey]
      configuration.allowPrivateAddresses = true
      configuration.listUpdates.refresh = false
      configuration.listUpdates.stateDirectory = "\(directory)/state"
      let client = try NetOptClient(configuration, transport: StubTransport(), resolver: StubResolver())
      #expect(client.list?.serial == max(file.list.serial, copied))
      #expect(client.listWarning == nil)
      await client.shutdown()
    }
    // Each writer removes the drafts of the writers before it.
    let names = try FileManager.default.contentsOfDirectory(atPath: directory)
    #expect(names.filter { $0.hasSuffix(".part") }.count <= 2, "\(names)")
    // If all kills left the same state, none came in the middle of a replacement, and the test has shown
    // nothing.
    #expect(states.count > 1, "\(states)")
  }

  /// The serial of a copy, which must have a valid signature; 0 without a copy.
  private func serial(of copy: ListStore.Copy?, _ reader: ListReader) throws -> Int64 {
    guard let copy else { return 0 }
    return try reader.check(copy.list, signature: copy.signature, name: "the copy", at: Date()).list.serial
  }

  /// The text of a file.
  private func read(_ path: String) throws -> String {
    String(decoding: try FileBytes.read(path, upTo: 1 << 20, as: "the output", in: .list), as: UTF8.self)
  }

  /// The path of the program `list-writer`. It is built into the directory that contains the program of the
  /// tests.
  private static var writer: String {
    get throws {
      let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
      return FileBytes.folder(of: tests) + "/list-writer"
    }
  }
}
