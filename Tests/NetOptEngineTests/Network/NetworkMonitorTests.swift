import Glibc
import NetOptCore
@testable import NetOptEngine
import NetOptTestSupport
import TestTools
import Synchronization
import Testing

/// The kernel's own messages, in a network of the test's.
@Suite(.enabled("\(NetworkNamespace.missing)") { NetworkNamespace.isAvailable })
struct NetworkMonitorTests {
  private final class Scene: Sendable {
    let namespace: NetworkNamespace
    let loop: EventLoop
    let monitor: NetworkMonitor
    let changes = EventRecorder<NetworkFingerprint>()

    init(_ setUp: [String]) throws {
      let namespace = try NetworkNamespace()
      try namespace.addLink("eth7")
      for command in setUp { try namespace.ip(command) }
      // The loop's thread begins in the network of the thread that makes it.
      let (loop, network) = try namespace.run { (try EventLoop(), NetworkFingerprint.current) }
      let changes = changes
      self.namespace = namespace
      self.loop = loop
      monitor = NetworkMonitor(loop, network: network) { changes.record($0) }
      monitor.start()
    }

    var current: NetworkFingerprint { get throws { try namespace.run { NetworkFingerprint.current } } }

    /// Returns when everything that was submitted to the loop has run.
    func loopHasRun() async {
      await withCheckedContinuation { done in
        if !loop.submit(Mark(done)) { done.resume() }
      }
    }

    func end() async {
      await monitor.stop()
      loop.stop()
      namespace.end()
    }
  }

  /// Tells that the loop has come here.
  private final class Mark: LoopWork {
    private let done: CheckedContinuation<Void, Never>
    init(_ done: CheckedContinuation<Void, Never>) { self.done = done }
    func run() { done.resume() }
  }

  /// Holds the loop up.
  private final class Blocker: LoopWork {
    private let isReleased = Atomic(false)
    func run() { while !isReleased.load(ordering: .acquiring) { usleep(500) } }
    func release() { isReleased.store(true, ordering: .releasing) }
  }

  private static let home = ["addr add 192.0.2.10/24 dev eth7", "route add default via 192.0.2.1"]

  @Test func anotherWayOutIsToldOnceForItsWholeBurst() async throws {
    let scene = try Scene(Self.home)
    try scene.namespace.ip("route del default")
    try scene.namespace.ip("addr del 192.0.2.10/24 dev eth7")
    try scene.namespace.ip("addr add 198.51.100.10/24 dev eth7")
    try scene.namespace.ip("route add default via 198.51.100.1")
    let office = try scene.current
    try await wait(for: "the new network") { scene.changes.events == [office] }
    #expect(office.isRouted)
    // IPv6 counts as well.
    try scene.namespace.ip("addr add 2001:db8::10/64 dev eth7 nodad")
    try scene.namespace.ip("route add default via 2001:db8::1")
    let both = try scene.current
    #expect(both != office)
    try await wait(for: "the next one") { scene.changes.events == [office, both] }
    await scene.end()
  }

  @Test func whatLeavesTheWayOutAsItIsIsNotTold() async throws {
    let scene = try Scene(Self.home)
    let home = try scene.current
    // As Docker does for each container.
    try scene.namespace.ip("link add veth0 type veth peer name veth1")
    try scene.namespace.ip("addr add 10.9.8.7/24 dev veth0")
    try scene.namespace.ip("link set veth0 up")
    try scene.namespace.ip("route add 203.0.113.0/24 via 10.9.8.1")
    // The route that leaves and comes back is the same way out.
    try scene.namespace.ip("route del default")
    try scene.namespace.ip("route add default via 192.0.2.1")
    #expect(try scene.current == home)
    // A change that is told comes after all that was not.
    try scene.namespace.ip("addr add 192.0.2.11/24 dev eth7")
    try scene.namespace.ip("route replace default via 192.0.2.1 src 192.0.2.11")
    let moved = try scene.current
    #expect(moved != home)
    try await wait(for: "the new source address") { !scene.changes.events.isEmpty }
    #expect(scene.changes.events == [moved])
    await scene.end()
  }

  @Test func withoutAWayOutThereIsNoNewNetwork() async throws {
    let scene = try Scene(Self.home)
    let home = try scene.current
    try scene.namespace.ip("link set eth7 down")
    #expect(try scene.current.isRouted == false)
    try scene.namespace.ip("link set eth7 up")
    try scene.namespace.ip("route add default via 192.0.2.1")
    #expect(try scene.current == home)
    try scene.namespace.ip("route replace default via 192.0.2.2")
    try await wait(for: "the new gateway") { !scene.changes.events.isEmpty }
    #expect(scene.changes.events.count == 1)
    await scene.end()
  }

  /// More messages than the socket's buffer holds: what is lost counts as a change.
  @Test func aFloodIsSurvived() async throws {
    let scene = try Scene(Self.home)
    let blocked = Blocker()
    #expect(scene.loop.submit(blocked))
    // While the loop is held up nobody reads.
    for round in 0..<6 {
      for number in 1...30 {
        try scene.namespace.ip("addr \(round.isMultiple(of: 2) ? "add" : "del") 10.1.\(number).1/24 dev eth7")
      }
    }
    try scene.namespace.ip("route replace default via 192.0.2.3")
    blocked.release()
    let now = try scene.current
    try await wait(for: "the change among the flood") { scene.changes.events.last == now }
    await scene.end()
  }

  @Test func stoppingGivesTheDescriptorBack() async throws {
    let scene = try Scene([])
    await scene.loopHasRun()
    let before = ProcessFootprint.now.descriptors
    await scene.monitor.stop()
    #expect(ProcessFootprint.now.descriptors < before)
    await scene.end()
  }
}
