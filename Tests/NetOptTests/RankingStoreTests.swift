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
  /// The fingerprint of the network of most rankings.
  private let network = "0123456789abcdef"
  /// When the rankings were learned.
  private let date = Date(timeIntervalSince1970: 1_795_000_000)

  init() throws {
    directory = try TemporaryDirectory.make("state")
    store = RankingStore("\(directory)/deep/down")
  }

  /// The ranking of a host with one endpoint.
  ///
  /// - Parameter rtt: the smoothed time until a connection to the endpoint is ready, in microseconds.
  private func host(_ name: String, rtt: Int64 = 1000) -> RouteHistory.Host {
    let estimate = RouteHistory.Estimate(smoothed: .microseconds(rtt), variation: .microseconds(10))
    return RouteHistory.Host(
      Origin(.https, host: name), learned: date, leader: .loopback,
      endpoints: [.init(.loopback, ready: estimate, roundTrip: nil)])
  }

  /// The ranking file of `network`.
  private var file: String { "\(store.directory)/\(network).json" }

  @Test("the store keeps one file for each network, merges hosts, and drops them after a day")
  func filesAndHosts() throws {
    #expect(try store.load(network) == nil)
    try store.save([network: RouteHistory(hosts: [host("a.test"), host("b.test")])], at: date)
    try store.save([network: RouteHistory(hosts: [host("b.test", rtt: 7), host("c.test")])], at: date)
    let merged = try #require(try store.load(network))
    #expect(merged.hosts == [host("a.test"), host("b.test", rtt: 7), host("c.test")])
    #expect(try store.load("fedcba9876543210") == nil)
    // Only the user may read the files in the state directory.
    let attributes = try FileManager.default.attributesOfItem(atPath: file)
    #expect(attributes[.posixPermissions] as? Int == 0o600)
    // A save more than a day later removes the other hosts.
    var late = host("d.test")
    late.learned = date.addingTimeInterval(100_000)
    try store.save([network: RouteHistory(hosts: [late])], at: late.learned)
    #expect(try store.load(network)?.hosts == [late])
  }

  @Test("the store keeps the latest networks up to mostNetworks and removes old drafts")
  func mostNetworks() throws {
    for number in 0..<20 {
      let name = "00000000000000" + (number < 10 ? "0" : "") + "\(number)"
      try store.save([name: RouteHistory(hosts: [host("a.test")])], at: date)
      let path = "\(store.directory)/\(name).json"
      try FileManager.default.setAttributes(
        [.modificationDate: date.addingTimeInterval(Double(number))], ofItemAtPath: path)
    }
    // The store removes drafts after an hour. This one is more than an hour old at the next save.
    let draft = "\(store.directory)/.x.json.1.part"
    try Data().write(to: URL(filePath: draft))
    try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: draft)
    try store.save([network: RouteHistory(hosts: [host("a.test")])], at: date.addingTimeInterval(4000))
    let names = try FileManager.default.contentsOfDirectory(atPath: store.directory)
    #expect(names.count == RankingStore.mostNetworks)
    #expect(names.contains("\(network).json") && names.contains("0000000000000019.json"))
    #expect(!names.contains("0000000000000000.json") && !names.contains(".x.json.1.part"))
  }

  @Test(
    "a file that is not a ranking throws when it is loaded and is replaced by a save",
    arguments: [
      "", "{\"schema_version\":1", "no JSON at all", "{\"schema_version\":9,\"network\":\"\",\"hosts\":[]}",
    ])
  func invalidFile(text: String) throws {
    try store.save([network: RouteHistory(hosts: [host("a.test")])], at: date)
    try Data(text.utf8).write(to: URL(filePath: file))
    let error = #expect(throws: NetOptError.self) { try store.load(network) }
    #expect(error?.message.contains("\(directory)/deep/down/rankings") == true)
    try store.save([network: RouteHistory(hosts: [host("a.test")])], at: date)
    #expect(try store.load(network)?.hosts.count == 1)
  }

  @Test("a save to a path that cannot be written throws unwritableFile with the path")
  func unwritableDirectory() throws {
    // This fails for root as well: the path leads through a file.
    try Data().write(to: URL(filePath: "\(directory)/deep"))
    let error = #expect(throws: NetOptError.self) {
      try store.save([network: RouteHistory(hosts: [host("a.test")])], at: date)
    }
    #expect(error?.code == .unwritableFile)
    #expect(error?.message.contains(store.directory) == true)
    #expect(try store.load(network) == nil)
  }

  /// A reader always finds a complete file, however many processes write the file.
  @Test("concurrent writers and readers of a ranking file see all of its hosts")
  func concurrentAccess() async throws {
    let store = store
    let network = network
    let date = date
    let hosts = (0..<4).map { host("host\($0).test") }
    try store.save([network: RouteHistory(hosts: hosts)], at: date)
    try await withThrowingTaskGroup(of: Void.self) { group in
      // Each writer saves one host. The store merges it with the other three.
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

  @Test("the state directory is netopt in XDG_STATE_HOME or in ~/.local/state")
  func stateDirectory() {
    #expect(StateDirectory.path(["XDG_STATE_HOME": "/s", "HOME": "/h"]) == "/s/netopt")
    #expect(StateDirectory.path(["XDG_STATE_HOME": "s", "HOME": "/h"]) == "/h/.local/state/netopt")
    #expect(StateDirectory.path(["XDG_STATE_HOME": "", "HOME": "/h"]) == "/h/.local/state/netopt")
    #expect(StateDirectory.path(["HOME": ""]) == nil)
    #expect(StateDirectory.path([:]) == nil)
  }

  /// When a link or a pipe is in the place of a ranking file, the store does not follow the link or wait for
  /// the pipe. A save replaces the link or the pipe with a regular file.
  @Test(
    "a link or pipe in place of a ranking file is not read, and a save replaces it",
    arguments: ["link", "dangling", "pipe"])
  func irregularFile(kind: String) throws {
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
    #expect(error?.message.contains("\(file) cannot be read: it is not a regular file") == true)
    try store.save([network: RouteHistory(hosts: [host("b.test")])], at: date)
    #expect(try store.load(network)?.hosts == [host("b.test")])
    // The target of the link is unchanged.
    if kind == "link" { #expect(try Data(contentsOf: URL(filePath: elsewhere)) == original) }
    if kind == "dangling" { #expect(!FileManager.default.fileExists(atPath: elsewhere)) }
  }

  /// No other process writes between the reading of the stored ranking and the writing of the merged ranking.
  @Test("a save merges under a lock, and concurrent saves keep all hosts")
  func mergeLock() async throws {
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
    // The result of concurrent saves contains the hosts of all of them.
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
