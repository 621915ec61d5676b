import Glibc
import NetOptCore
import NetOptRouting
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOpt

/// A client reads its list again when the file changes.
@Suite struct ListFileTests {
  private let directory: String
  private var path: String { "\(directory)/list.json" }

  init() throws { directory = try TemporaryDirectory.make("list-file") }

  /// Makes a client that uses a list file. The client sends nothing: it neither probes nor fetches lists.
  ///
  /// - Parameters:
  ///   - path: the path of the list file. Default: `path` of these tests.
  ///   - keys: the trusted keys of the client.
  private func client(
    _ recorder: ListRecorder, path: String? = nil, keys: [MinisignPublicKey] = []
  ) throws -> NetOptClient {
    var configuration = ClientConfiguration()
    configuration.list = .file(path ?? self.path)
    configuration.allowPrivateAddresses = true
    configuration.trustedKeys = keys
    configuration.proxy = .none
    configuration.probing.atStart = false
    configuration.listUpdates.refresh = false
    configuration.listUpdates.stateDirectory = "\(directory)/state"
    configuration.listObservers = [recorder]
    return try NetOptClient(configuration)
  }

  /// Waits until the client has begun to use a list with this serial.
  private func use(_ serial: Int64, _ recorder: ListRecorder) async throws {
    try await recorder.events.wait(for: "serial \(serial) to be used") {
      $0.contains { $0.isChange && $0.status.serial == serial }
    }
  }

  /// Overwrites the list file in place, as a shell's `>` does.
  private func overwrite(_ bytes: [UInt8]) throws {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
    try #require(descriptor >= 0)
    defer { close(descriptor) }
    try #require(write(descriptor, bytes, bytes.count) == bytes.count)
  }

  @Test("a client reads a list file that is overwritten, renamed over, or deleted and made anew")
  func waysToWrite() async throws {
    try overwrite(listBytes(serial: 1))
    let recorder = ListRecorder()
    let client = try client(recorder)
    #expect(client.listStatus.source == .file(path))
    // The file changes in three ways: it is overwritten in place, replaced by a renamed file, and deleted and
    // created again. The last list has a lower serial. The client uses it too, because whoever edits the file
    // decides.
    try overwrite(listBytes(serial: 2))
    try await use(2, recorder)
    try replaceFile(path, listBytes(serial: 3))
    try await use(3, recorder)
    try #require(unlink(path) == 0)
    // While a file is overwritten in place, the client may read an empty file, and reports another failure.
    // So the test waits for `unreadableFile`, the code for a missing file.
    try await recorder.events.wait(for: "the file to be missed") { events in
      events.contains { if case .failed(let error, _) = $0 { error.code == .unreadableFile } else { false } }
    }
    #expect(client.list?.serial == 3)
    #expect(client.listWarning?.code == .unreadableFile)
    try overwrite(listBytes(serial: 1))
    try await use(1, recorder)
    #expect(client.list?.serial == 1)
    #expect(client.listWarning == nil)
    await client.shutdown()
  }

  @Test("a faulty list file leaves the old list in use and reports the fault")
  func faultyFile() async throws {
    try overwrite(listBytes(serial: 1))
    let recorder = ListRecorder()
    let client = try client(recorder)
    var failures = 0
    for (bytes, reason) in [
      (Array("{".utf8), "not JSON"), (listBytes(serial: 2, expires: "2026-01-01T00:00:00Z"), "expired"),
      (listBytes(serial: 2, hosts: #"{"a":{"endpoints":[{"ip":"x"}]}}"#), "is not an IP address"),
    ] {
      failures += 1
      let count = failures
      try replaceFile(path, bytes)
      let events = try await recorder.events.wait(for: "a failure") { $0.count { $0.isFailure } == count }
      guard case .failed(let error, let status) = try #require(events.last) else { continue }
      #expect(error.message.contains(reason), "\(error.message)")
      #expect(error.message.hasPrefix(path))
      #expect(status.serial == 1)
      #expect(client.list?.serial == 1)
      #expect(client.listStatus.lastError?.message == error.message)
    }
    try replaceFile(path, listBytes(serial: 4))
    try await use(4, recorder)
    #expect(client.listWarning == nil)
    await client.shutdown()
  }

  @Test("a client uses a signed list file once its signature is there, and replace changes both at once")
  func signedFile() async throws {
    let signer = try ListSigner()
    try replaceFile(path, listBytes(serial: 1))
    try replaceFile(path + ".minisig", try signer.signature(of: listBytes(serial: 1)))
    let recorder = ListRecorder()
    let client = try client(recorder, keys: [signer.publicKey])
    try replaceFile(path, listBytes(serial: 2))
    let events = try await recorder.events.wait(for: "a failure") { $0.contains { $0.isFailure } }
    #expect(events[0].status.serial == 1)
    try replaceFile(path + ".minisig", try signer.signature(of: listBytes(serial: 2)))
    try await use(2, recorder)
    #expect(client.listStatus.signedBy == signer.publicKey.id)
    // Replaces list and signature as `iplist update` does. Whenever the client reads them, it finds the
    // signature that belongs to the list.
    let reader = ListReader(trustedKeys: [signer.publicKey], allowPrivateAddresses: true)
    for serial in 3...20 {
      let bytes = listBytes(serial: serial)
      let new = try reader.check(
        bytes, signature: try signer.signature(of: bytes), name: "new", at: .now)
      #expect(try reader.replace(path, by: new, at: .now))
      #expect(try !reader.replace(path, by: new, at: .now))
    }
    try await use(20, recorder)
    #expect(recorder.events.events.count { $0.isFailure } == 1)
    await client.shutdown()
  }

  /// This is how Kubernetes mounts a file: the path of the file is a link, which leads through a second link
  /// to a directory. A change of the file replaces the second link.
  @Test("a client sees the change of a link to its list file, and then of the file")
  func linkedFile() async throws {
    for name in ["one", "two"] { try #require(mkdir("\(directory)/\(name)", 0o755) == 0) }
    try replaceFile("\(directory)/one/list.json", listBytes(serial: 1))
    try replaceFile("\(directory)/two/list.json", listBytes(serial: 2))
    try #require(symlink("one", "\(directory)/data") == 0)
    try #require(symlink("data/list.json", "\(directory)/link.json") == 0)
    let recorder = ListRecorder()
    let client = try client(recorder, path: "\(directory)/link.json")
    #expect(client.list?.serial == 1)
    try #require(symlink("two", "\(directory)/next") == 0)
    try #require(rename("\(directory)/next", "\(directory)/data") == 0)
    try await use(2, recorder)
    // Replaces the file itself, in the directory to which the links now lead.
    try replaceFile("\(directory)/two/list.json", listBytes(serial: 3))
    try await use(3, recorder)
    await client.shutdown()
  }

  /// Replaces the second of two links to the file. This link is in a directory that contains neither the
  /// first link nor the file.
  @Test("a client watches every link between its path and the list file")
  func middleLink() async throws {
    for name in ["a", "one", "two"] { try #require(mkdir("\(directory)/\(name)", 0o755) == 0) }
    try replaceFile("\(directory)/one/list.json", listBytes(serial: 1))
    try replaceFile("\(directory)/two/list.json", listBytes(serial: 2))
    try #require(symlink("../one/list.json", "\(directory)/a/middle") == 0)
    try #require(symlink("\(directory)/a/middle", "\(directory)/link.json") == 0)
    let recorder = ListRecorder()
    let client = try client(recorder, path: "\(directory)/link.json")
    #expect(client.list?.serial == 1)
    try #require(symlink("../two/list.json", "\(directory)/a/next") == 0)
    try #require(rename("\(directory)/a/next", "\(directory)/a/middle") == 0)
    try await use(2, recorder)
    await client.shutdown()
  }

  @Test("a client notices a new signature of an unchanged list by another trusted key")
  func signerChange() async throws {
    let (first, second) = (try ListSigner(), try ListSigner())
    let bytes = listBytes(serial: 1)
    try replaceFile(path, bytes)
    try replaceFile(path + ".minisig", try first.signature(of: bytes))
    let client = try client(ListRecorder(), keys: [first.publicKey, second.publicKey])
    #expect(client.listStatus.signedBy == first.publicKey.id)
    try replaceFile(path + ".minisig", try second.signature(of: bytes))
    try await wait(for: "the other key") { client.listStatus.signedBy == second.publicKey.id }
    await client.shutdown()
  }

  /// The error of a refresh from one URL says nothing about another URL.
  @Test("a list file with another refresh URL clears the refresh error")
  func otherURL() async throws {
    let recorder = ListRecorder()
    try replaceFile(path, listBytes(serial: 1, refresh: "https://127.0.0.1:1/one.json"))
    let client = try client(recorder)
    await #expect(throws: NetOptError.self) { try await client.refreshList() }
    #expect(client.listWarning != nil)
    try replaceFile(path, listBytes(serial: 2, refresh: "https://127.0.0.1:1/two.json"))
    try await use(2, recorder)
    #expect(client.listWarning == nil)
    await client.shutdown()
  }

  @Test("a client keeps its list while the file's directory is gone, and reads the file when it is back")
  func removedDirectory() async throws {
    let folder = "\(directory)/folder"
    let path = "\(folder)/list.json"
    try #require(mkdir(folder, 0o755) == 0)
    try replaceFile(path, listBytes(serial: 1))
    let recorder = ListRecorder()
    let client = try client(recorder, path: path)
    try #require(unlink(path) == 0 && rmdir(folder) == 0)
    try await recorder.events.wait(for: "a failure") { $0.contains { $0.isFailure } }
    #expect(client.list?.serial == 1)
    try #require(mkdir(folder, 0o755) == 0)
    try replaceFile(path, listBytes(serial: 2))
    try await use(2, recorder)
    await client.shutdown()
  }

  @Test("a client that ends leaves no descriptor of its file watch open")
  func watchDescriptors() async throws {
    await #expect(processExitsWith: .success) {
      let directory = try TemporaryDirectory.make("list-file")
      try replaceFile("\(directory)/list.json", listBytes(serial: 1))
      var configuration = ClientConfiguration()
      configuration.list = .file("\(directory)/list.json")
      configuration.allowPrivateAddresses = true
      configuration.probing.atStart = false
      await (try NetOptClient(configuration)).shutdown()
      // libdispatch opens descriptors when a process first sleeps, so the process sleeps before it counts the
      // descriptors. A client that was shut down may keep some descriptors open for a moment.
      try await Task.sleep(for: .milliseconds(1))
      let before = ProcessFootprint.now.descriptors
      for round in 0..<6 {
        let client = try NetOptClient(configuration)
        // Three clients are shut down, and three are released without a shutdown.
        if round < 3 { await client.shutdown() }
      }
      try await wait(for: "descriptors to be as before") { ProcessFootprint.now.descriptors <= before }
    }
  }
}
