import FoundationEssentials
import Glibc
import NetOptCore
import NetOptRouting
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOpt

@Suite struct ListStoreTests {
  /// The directory of the store. It does not exist before the store writes its first file.
  private let directory: String
  private let store: ListStore
  private let url: HTTPURL

  init() throws {
    directory = try TemporaryDirectory.make("store") + "/state/netopt/lists"
    store = ListStore(
      directory: directory, for: ListReader(trustedKeys: [], allowPrivateAddresses: true))
    url = try HTTPURL("https://a.example/list.json?x=1")
  }

  /// A copy of a list with this serial. It has an entity tag if the serial is even. `signature` need not be a
  /// valid signature, because the store does not verify signatures.
  private func copy(_ serial: Int, signature: [UInt8]? = Array("a signature\n\nwith an empty line".utf8))
    -> ListStore.Copy
  {
    ListStore.Copy(
      source: url.description, tag: serial % 2 == 0 ? "W/\"\(serial)\"" : nil,
      list: listBytes(serial: serial),
      signature: signature)
  }

  /// The names of the files in the store's directory; empty while there is no directory.
  private var files: [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []).sorted()
  }

  @Test("the store returns the copy that it keeps for a URL, and none for another URL")
  func keptCopy() throws {
    #expect(try store.copy(of: url) == nil)
    for (serial, signature) in [(1, nil), (2, [1, 2, 3]), (3, [])] as [(Int, [UInt8]?)] {
      try store.keep(copy(serial, signature: signature), of: url) { _ in false }
      var kept = copy(serial, signature: signature)
      // In a file of the store, an empty signature looks like none.
      if kept.signature?.isEmpty == true { kept.signature = nil }
      #expect(try store.copy(of: url) == kept)
    }
    #expect(try store.copy(of: HTTPURL("https://a.example/list.json")) == nil)
  }

  @Test("the store leaves a copy in place that the caller finds better")
  func betterCopy() throws {
    try store.keep(copy(9), of: url) { _ in true }
    #expect(try store.copy(of: url) == copy(9))
    try store.keep(copy(8), of: url) { present in
      present == copy(9)
    }
    #expect(try store.copy(of: url) == copy(9))
  }

  @Test("readers with other trusted keys or rules have separate copies and records")
  func separateCopies() throws {
    let keys = [try ListSigner().publicKey, try ListSigner().publicKey]
    func store(_ keys: [MinisignPublicKey], _ allow: Bool = true) -> ListStore {
      ListStore(directory: directory, for: ListReader(trustedKeys: keys, allowPrivateAddresses: allow))
    }
    try store(keys).keep(copy(1), of: url) { _ in false }
    try store(keys).keep(RefreshSchedule.Record(failures: 1), of: url)
    for other in [self.store, store([], false), store(Array(keys.prefix(1))), store(keys, false)] {
      #expect(try other.copy(of: url) == nil)
      #expect(other.record(of: url) == .init())
      try other.keep(copy(2), of: url) { _ in false }
    }
    // The order of the keys does not matter.
    #expect(try store(keys.reversed()).copy(of: url) == copy(1))
    #expect(store(keys.reversed()).record(of: url).failures == 1)
  }

  /// Runs in a process of its own, because it changes the working directory.
  @Test("the store accepts a relative directory")
  func relativeDirectory() async throws {
    await #expect(processExitsWith: .success) {
      let directory = try TemporaryDirectory.make("relative")
      try #require(chdir(directory) == 0)
      let store = ListStore(
        directory: "state/lists", for: ListReader(trustedKeys: [], allowPrivateAddresses: true))
      let url = try HTTPURL("https://a.example/list.json")
      try store.keep(RefreshSchedule.Record(failures: 3), of: url)
      #expect(store.record(of: url).failures == 3)
      #expect(try FileManager.default.contentsOfDirectory(atPath: directory + "/state/lists").count == 2)
    }
  }

  @Test("the store detects a damaged copy and replaces it with a good one")
  func damagedCopy() throws {
    try store.keep(copy(2), of: url) { _ in false }
    let path = directory + "/" + (try #require(files.first { $0.hasSuffix(".list") }))
    let good = try FileBytes.read(path, upTo: 1 << 20, as: "the test's file", in: .list)
    for index in 0..<good.count {
      var bad = good
      bad[index] ^= 0x20
      try replaceFile(path, bad)
      // The digest in the file covers only the list and the signature. A change of the source or the tag may
      // go unnoticed.
      if let copy = try? store.copy(of: url) {
        #expect(copy.list == self.copy(2).list && copy.signature == self.copy(2).signature)
      }
    }
    for count in 0..<good.count {
      try replaceFile(path, Array(good.prefix(count)))
      let error = #expect(throws: NetOptError.self) { try store.copy(of: url) }
      #expect(error?.message.contains("is damaged") == true)
    }
    // A damaged copy is replaced even though the closure wants to keep the stored copy. The store asks the
    // closure only about copies that are not damaged.
    try store.keep(copy(1), of: url) { _ in true }
    #expect(try store.copy(of: url) == copy(1))
  }

  @Test("the store keeps refresh records and ignores damaged ones")
  func records() throws {
    #expect(store.record(of: url) == .init())
    let moment = Date(timeIntervalSince1970: 1_795_168_800)
    for record in [
      RefreshSchedule.Record(checked: moment, attempted: moment + 5, failures: 0),
      RefreshSchedule.Record(attempted: moment, failures: 7, notBefore: moment + 60),
      RefreshSchedule.Record(),
    ] {
      try store.keep(record, of: url)
      #expect(store.record(of: url) == record)
    }
    let path = directory + "/" + (try #require(files.first { $0.hasSuffix(".record") }))
    for text in [
      "", "x", "netopt-record 1\nfailures: 99999999999999999999\nchecked: x\n\n", "netopt-record 2\n\n",
    ] {
      try replaceFile(path, Array(text.utf8))
      #expect(store.record(of: url) == .init())
    }
  }

  @Test("only the user may read the store's directory and files")
  func permissions() throws {
    try store.keep(copy(1), of: url) { _ in false }
    try store.keep(RefreshSchedule.Record(failures: 1), of: url)
    func mode(_ path: String) throws -> Int? {
      try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    }
    #expect(try mode(directory) == 0o700)
    #expect(files.count == 3)
    for name in files { #expect(try mode("\(directory)/\(name)") == 0o600) }
  }

  @Test("a keep removes the draft that a killed process left")
  func leftDraft() throws {
    try store.keep(copy(1), of: url) { _ in false }
    let name = try #require(files.first { $0.hasSuffix(".list") })
    // The first file has the name of a draft. The second one is not a draft, because `other` is not a number.
    try replaceFile("\(directory)/.\(name).12ab.part", [1])
    try replaceFile("\(directory)/.\(name).other.part", [1])
    try store.keep(copy(2), of: url) { _ in false }
    #expect(files.filter { $0.hasSuffix(".part") } == [".\(name).other.part"])
  }

  @Test("concurrent keeps leave the newest copy in the store")
  func concurrentKeeps() async throws {
    await withTaskGroup(of: Void.self) { group in
      for serial in 1...40 {
        group.addTask {
          try? self.store.keep(self.copy(serial), of: self.url) { present in
            let list = try? EndpointList(
              present.list, file: "l", rules: .init(allowPrivateAddresses: true, now: Date()))
            return (list?.serial ?? 0) > serial
          }
        }
      }
    }
    #expect(try store.copy(of: url) == copy(40))
  }

  @Test("the list directory is netopt/lists in XDG_STATE_HOME or in ~/.local/state")
  func listDirectory() {
    #expect(ListStore.directory(in: ["HOME": "/h", "XDG_STATE_HOME": "/s"]) == "/s/netopt/lists")
    #expect(ListStore.directory(in: ["HOME": "/h"]) == "/h/.local/state/netopt/lists")
    #expect(ListStore.directory(in: ["HOME": "/h", "XDG_STATE_HOME": "s"]) == "/h/.local/state/netopt/lists")
    #expect(ListStore.directory(in: [:]) == nil)
  }
}
