import FoundationEssentials
import Glibc
import NetOptCore
import NetOptRouting
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOpt

@Suite struct RankingStoreTests {
  private let directory: String
  private let store: RankingStore
  private let network = "0123456789abcdef"
  private let date = Date(timeIntervalSince1970: 1_795_000_000)

  init() throws {
    directory = try TemporaryDirectory.make("state")
    store = RankingStore("\(directory)/deep/down")
  }

  private func host(_ name: String, rtt: Int64 = 1000) -> RouteHistory.Host {
    let estimate = RouteHistory.Estimate(smoothed: .microseconds(rtt), variation: .microseconds(10))
    return RouteHistory.Host(
      Origin(.https, host: name), learned: date, leader: .loopback,
      endpoints: [.init(.loopback, ready: estimate, roundTrip: nil)])
  }

  private var file: String { "\(store.directory)/\(network).json" }

  @Test func keepsOneFileForEachNetworkAndMergesHosts() throws {
    #expect(try store.load(network) == nil)
    try store.save([network: RouteHistory(hosts: [host("a.test"), host("b.test")])], at: date)
    try store.save([network: RouteHistory(hosts: [host("b.test", rtt: 7), host("c.test")])], at: date)
    let merged = try #require(try store.load(network))
    #expect(merged.hosts == [host("a.test"), host("b.test", rtt: 7), host("c.test")])
    #expect(try store.load("fedcba9876543210") == nil)
    // What is in the state directory is the user's alone.
    let attributes = try FileManager.default.attributesOfItem(atPath: file)
    #expect(attributes[.posixPermissions] as? Int == 0o600)
    // After a day the others are gone.
    var late = host("d.test")
    late.learned = date.addingTimeInterval(100_000)
    try store.save([network: RouteHistory(hosts: [late])], at: late.learned)
    #expect(try store.load(network)?.hosts == [late])
  }

  @Test func keepsSoManyNetworksAndRemovesWhatOthersLeftBehind() throws {
    for number in 0..<20 {
      let name = "00000000000000" + (number < 10 ? "0" : "") + "\(number)"
      try store.save([name: RouteHistory(hosts: [host("a.test")])], at: date)
      let path = "\(store.directory)/\(name).json"
      try FileManager.default.setAttributes(
        [.modificationDate: date.addingTimeInterval(Double(number))], ofItemAtPath: path)
    }
    let draft = "\(store.directory)/.x.json.1.part"
    try Data().write(to: URL(filePath: draft))
    try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: draft)
    try store.save([network: RouteHistory(hosts: [host("a.test")])], at: date.addingTimeInterval(4000))
    let names = try FileManager.default.contentsOfDirectory(atPath: store.directory)
    #expect(names.count == RankingStore.mostNetworks)
    #expect(names.contains("\(network).json") && names.contains("0000000000000019.json"))
    #expect(!names.contains("0000000000000000.json") && !names.contains(".x.json.1.part"))
  }

  @Test(arguments: [
    "", "{\"schema_version\":1", "no JSON at all", "{\"schema_version\":9,\"network\":\"\",\"hosts\":[]}",
  ])
  func aFileThatIsNoneOfItsIsAnErrorAndReplaced(text: String) throws {
    try store.save([network: RouteHistory(hosts: [host("a.test")])], at: date)
    try Data(text.utf8).write(to: URL(filePath: file))
    let error = #expect(throws: NetOptError.self) { try store.load(network) }
    #expect(error?.message.contains("\(directory)/deep/down/rankings") == true)
    try store.save([network: RouteHistory(hosts: [host("a.test")])], at: date)
    #expect(try store.load(network)?.hosts.count == 1)
  }

  @Test func whereNothingCanBeWrittenIsAnErrorThatSaysSo() throws {
    // For root as well: the way leads through a file.
    try Data().write(to: URL(filePath: "\(directory)/deep"))
    let error = #expect(throws: NetOptError.self) {
      try store.save([network: RouteHistory(hosts: [host("a.test")])], at: date)
    }
    #expect(error?.code == .unwritableFile)
    #expect(error?.message.contains(store.directory) == true)
    #expect(try store.load(network) == nil)
  }

  /// Whoever reads finds a whole file, however many write.
  @Test func writersAndReadersDoNotDisturbEachOther() async throws {
    let store = store
    let network = network
    let date = date
    let hosts = (0..<4).map { host("host\($0).test") }
    try store.save([network: RouteHistory(hosts: hosts)], at: date)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for writer in 0..<4 {
        group.addTask {
          for round in 0..<25 {
            var own = hosts[writer]
            own.learned = date.addingTimeInterval(Double(round))
            own.leader = nil
            try store.save([network: RouteHistory(hosts: [own])], at: date)
          }
        }
      }
      for _ in 0..<2 {
        group.addTask {
          for _ in 0..<200 {
            let hosts = try store.load(network)?.hosts.count
            #expect(hosts == 4)
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: store.directory) == ["\(network).json"])
  }

  @Test func theStateDirectoryIsThatOfTheStandard() {
    #expect(StateDirectory.path(["XDG_STATE_HOME": "/s", "HOME": "/h"]) == "/s/netopt")
    #expect(StateDirectory.path(["XDG_STATE_HOME": "s", "HOME": "/h"]) == "/h/.local/state/netopt")
    #expect(StateDirectory.path(["XDG_STATE_HOME": "", "HOME": "/h"]) == "/h/.local/state/netopt")
    #expect(StateDirectory.path(["HOME": ""]) == nil)
    #expect(StateDirectory.path([:]) == nil)
  }

  /// What others put in a file's place is neither followed nor waited for, and goes when the ranking is written.
  @Test(arguments: ["link", "dangling", "pipe"])
  func whatIsNoRegularFileIsNotRead(kind: String) throws {
    try store.save([network: RouteHistory(hosts: [host("a.test")])], at: date)
    let elsewhere = "\(directory)/elsewhere"
    let original = try Data(contentsOf: URL(filePath: file))
    switch kind {
    case "pipe":
      try FileManager.default.removeItem(atPath: file)
      try #require(mkfifo(file, 0o600) == 0)
    default:
      if kind == "link" { try original.write(to: URL(filePath: elsewhere)) }
      try FileManager.default.removeItem(atPath: file)
      try #require(symlink(elsewhere, file) == 0)
    }
    let error = #expect(throws: NetOptError.self) { try store.load(network) }
    #expect(error?.code == .unreadableFile)
    #expect(error?.message.contains("\(file) is not read: it is no regular file") == true)
    try store.save([network: RouteHistory(hosts: [host("b.test")])], at: date)
    #expect(try store.load(network)?.hosts == [host("b.test")])
    // What the link led to is as it was.
    if kind == "link" { #expect(try Data(contentsOf: URL(filePath: elsewhere)) == original) }
    if kind == "dangling" { #expect(!FileManager.default.fileExists(atPath: elsewhere)) }
  }

  /// Between reading what is there and writing both, nobody else writes.
  @Test func whatIsMergedIsUnderALock() async throws {
    try store.save([network: RouteHistory(hosts: [host("a.test")])], at: date)
    do {
      let lock = try FileLock(store.directory, .folder, as: "the test", in: .list)
      let error = #expect(throws: NetOptError.self) {
        try store.save([network: RouteHistory(hosts: [host("b.test")])], at: date)
      }
      #expect(error?.code == .unwritableFile && error?.message.contains(store.directory) == true)
      withExtendedLifetime(lock) {}
    }
    #expect(try store.load(network)?.hosts == [host("a.test")])
    // All of what many write at once is there afterwards.
    let hosts = (0..<4).map { host("h\($0).test") }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for host in hosts {
        group.addTask { [store, network, date] in
          try store.save([network: RouteHistory(hosts: [host])], at: date)
        }
      }
      try await group.waitForAll()
    }
    #expect(try store.load(network)?.hosts == [host("a.test")] + hosts)
  }
}
