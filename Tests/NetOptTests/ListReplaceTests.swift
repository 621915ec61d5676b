import FoundationEssentials
import Glibc
import NetOptCore
import NetOptRouting
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOpt

/// Tests `ListReader.replace`, which replaces a list file and its signature file, also after another process
/// was killed during a replacement.
@Suite struct ListReplaceTests {
  private let directory: String
  private let signer: ListSigner
  private let reader: ListReader
  private var path: String { "\(directory)/list.json" }

  init() throws {
    directory = try TemporaryDirectory.make("replace")
    signer = try ListSigner()
    reader = ListReader(trustedKeys: [signer.publicKey], allowPrivateAddresses: true)
  }

  /// A new list with this serial, signed by `signer`.
  private func list(_ serial: Int) throws -> VerifiedList {
    let bytes = listBytes(serial: serial)
    return try reader.check(bytes, signature: try signer.signature(of: bytes), name: "new", at: .now)
  }

  /// Writes the files of a list, possibly as an interrupted replacement leaves them. Each parameter is a
  /// serial.
  ///
  /// - Parameters:
  ///   - list: the list in the list file.
  ///   - signature: the list that the signature in `.minisig` belongs to.
  ///   - next: the list that the signature in `.minisig.next` belongs to; `nil` for no such file.
  private func write(list: Int, signature: Int, next: Int? = nil, at path: String) throws {
    try replaceFile(path, listBytes(serial: list))
    try replaceFile(path + ".minisig", try signer.signature(of: listBytes(serial: signature)))
    if let next {
      try replaceFile(path + ".minisig.next", try signer.signature(of: listBytes(serial: next)))
    }
  }

  /// The serial of the list file at a path. The file must be valid and have a valid signature.
  private func serial(_ path: String) throws -> Int64 {
    try reader.file(path, at: .now, allowExpired: false).list.serial
  }

  /// The first process was killed after it replaced the list. The second process cannot write the list.
  @Test("two interrupted replacements leave a list with a valid signature")
  func interruptedTwice() throws {
    // The path is a link to a list file whose name has 250 bytes. The name of a draft of this file would be
    // too long, so the list cannot be replaced. The signature files are beside the link and have short names.
    let target = "\(directory)/" + String(repeating: "x", count: 250)
    try replaceFileInPlace(target)
    try #require(symlink(target, path) == 0)
    try replaceFile(path + ".minisig", try signer.signature(of: listBytes(serial: 1)))
    try replaceFile(path + ".minisig.next", try signer.signature(of: listBytes(serial: 2)))
    #expect(try serial(path) == 2)
    let error = #expect(throws: NetOptError.self) { try reader.replace(path, by: try list(3), at: .now) }
    #expect(error?.underlying?.code == ENAMETOOLONG)
    #expect(try serial(path) == 2)
  }

  /// Writes the list with serial 2 to the file itself. `replaceFile` would need a draft, whose name would be
  /// too long.
  private func replaceFileInPlace(_ path: String) throws {
    let bytes = listBytes(serial: 2)
    let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o644)
    try #require(descriptor >= 0)
    defer { close(descriptor) }
    try #require(Glibc.write(descriptor, bytes, bytes.count) == bytes.count)
  }

  @Test("a replacement succeeds after an interrupted one and leaves no other files behind")
  func interruptedOnce() throws {
    try write(list: 2, signature: 1, next: 2, at: path)
    #expect(try reader.replace(path, by: try list(3), at: .now))
    #expect(try serial(path) == 3)
    try write(list: 2, signature: 2, next: 3, at: path)
    #expect(try reader.replace(path, by: try list(4), at: .now))
    #expect(try serial(path) == 4)
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: directory).sorted() == [
        "list.json", "list.json.minisig",
      ])
  }

  @Test("a reader without keys refuses to replace a list that has two signatures")
  func withoutKey() throws {
    try write(list: 2, signature: 1, next: 2, at: path)
    let reader = ListReader(trustedKeys: [], allowPrivateAddresses: true)
    let error = #expect(throws: NetOptError.self) { try reader.replace(path, by: try list(3), at: .now) }
    #expect(error?.code == .invalidSignature)
    #expect(try serial(path) == 2)
  }

  @Test("a replacement writes the list behind a link and the signature beside the link")
  func linkedList() throws {
    try #require(mkdir("\(directory)/there", 0o755) == 0)
    try replaceFile("\(directory)/there/list.json", listBytes(serial: 1))
    try #require(symlink("there/list.json", path) == 0)
    try replaceFile(path + ".minisig", try signer.signature(of: listBytes(serial: 1)))
    #expect(try reader.replace(path, by: try list(2), at: .now))
    #expect(try serial(path) == 2)
    #expect(try !reader.replace(path, by: try list(2), at: .now))
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: path) == "there/list.json")
    // Now the path of the signature is a link too. Both links stay links.
    try #require(rename(path + ".minisig", "\(directory)/there/list.json.minisig") == 0)
    try #require(symlink("there/list.json.minisig", path + ".minisig") == 0)
    #expect(try reader.replace(path, by: try list(3), at: .now))
    for path in [path, "\(directory)/there/list.json"] { #expect(try serial(path) == 3) }
  }

  /// A service can still read its file after root has replaced the file.
  @Test("a replaced file keeps its owner, group and mode", .enabled(if: geteuid() == 0))
  func owner() throws {
    try replaceFile(path, [1])
    try #require(chown(path, 12_345, 54_321) == 0 && chmod(path, 0o600) == 0)
    try replaceFile(path, [2])
    var status = stat()
    try #require(stat(path, &status) == 0)
    #expect(status.st_uid == 12_345 && status.st_gid == 54_321 && status.st_mode & 0o7777 == 0o600)
  }

  /// When a process hangs while it holds the lock, other processes do not wait for it forever.
  @Test("a replacement that cannot get the lock throws an error that names the locked directory")
  func heldLock() throws {
    let directory = try TemporaryDirectory.make("lock")
    let path = "\(directory)/list.json"
    let bytes = listBytes(serial: 1)
    try replaceFile(path, bytes)
    let reader = ListReader(trustedKeys: [], allowPrivateAddresses: true)
    let new = try reader.check(listBytes(serial: 2), signature: nil, name: "new", at: .now)
    do {
      let lock = try FileLock(directory, .folder, as: "the test", in: .list)
      let error = #expect(throws: NetOptError.self) {
        try reader.replace(path, by: new, at: .now, lockTimeout: .milliseconds(20))
      }
      #expect(error?.code == .unwritableFile)
      #expect(error?.underlying?.code == EWOULDBLOCK)
      let message = error?.message ?? ""
      #expect(message.contains(path) && message.contains("another process has held the lock on \(directory)"))
      #expect(try FileBytes.read(path, upTo: 10_000, as: "the list", in: .list) == bytes)
      withExtendedLifetime(lock) {}
    }
    #expect(try reader.replace(path, by: new, at: .now, lockTimeout: .milliseconds(20)))
  }

  @Test("the store throws when it cannot get its lock within its patience")
  func storeLock() throws {
    let directory = try TemporaryDirectory.make("store-lock")
    let reader = ListReader(trustedKeys: [], allowPrivateAddresses: true)
    let store = ListStore(directory: directory, for: reader, lockTimeout: .milliseconds(20))
    let url = try HTTPURL("https://api.test/list.json")
    let copy = ListStore.Copy(source: "\(url)", tag: nil, list: listBytes(serial: 1), signature: nil)
    try store.keep(copy, of: url) { _ in false }
    let names = try FileManager.default.contentsOfDirectory(atPath: directory)
    let name = try #require(names.first { $0.hasSuffix(".lock") })
    do {
      let lock = try FileLock("\(directory)/\(name)", .file, as: "the test", in: .list)
      let error = #expect(throws: NetOptError.self) { try store.keep(copy, of: url) { _ in false } }
      #expect(error?.underlying?.code == EWOULDBLOCK && error?.message.contains(name) == true)
      withExtendedLifetime(lock) {}
    }
    try store.keep(copy, of: url) { _ in false }
  }
}
