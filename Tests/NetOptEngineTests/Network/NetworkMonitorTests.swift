import Glibc
import NetOptCore
@testable import NetOptEngine
import NetOptTestSupport
import TestTools
import Synchronization
import Testing

/// Tests the monitor with real messages of the kernel. Each test changes addresses and routes in a network
/// namespace of its own.
@Suite(.enabled("\(NetworkNamespace.missing)") { NetworkNamespace.isAvailable })
struct NetworkMonitorTests {
  /// A monitor in a new network namespace with the interface `eth7`.
  private final class Scene: Sendable {
    let namespace: NetworkNamespace
    let loop: EventLoop
    let monitor: NetworkMonitor
    /// The fingerprints of the new networks that the monitor has reported, in order.
    let changes = EventRecorder<NetworkFingerprint>()

    /// Makes the namespace and starts the monitor.
    ///
    /// - Parameter setUp: commands for ip(8), which run in the namespace before the monitor starts.
    init(_ setUp: [String]) throws {
      let namespace = try NetworkNamespace()
      try namespace.addLink("eth7")
      for command in setUp { try namespace.ip(command) }
      // The loop's thread starts in the network namespace of the thread that creates the loop.
      let (loop, network) = try namespace.run { (try EventLoop(), NetworkFingerprint.current) }
      let changes = changes
      self.namespace = namespace
      self.loop = loop
      monitor = NetworkMonitor(loop, network: network) { changes.record($0) }
      monitor.start()
    }

    /// The fingerprint of the namespace's network now, read without the monitor.
    var current: NetworkFingerprint { get throws { try namespace.run { NetworkFingerprint.current } } }

    /// Waits until the loop has run all work that was submitted before.
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

  /// Work on the loop that resumes the task which waits for it.
  private final class Mark: LoopWork {
    private let done: CheckedContinuation<Void, Never>
    init(_ done: CheckedContinuation<Void, Never>) { self.done = done }
    func run() { done.resume() }
  }

  /// Work that blocks the loop until `release` is called.
  private final class Blocker: LoopWork {
    private let isReleased = Atomic(false)
    func run() { while !isReleased.load(ordering: .acquiring) { usleep(500) } }
    func release() { isReleased.store(true, ordering: .releasing) }
  }

  /// The commands for ip(8) that give `eth7` an address and a default route.
  private static let home = ["addr add 192.0.2.10/24 dev eth7", "route add default via 192.0.2.1"]

  @Test("the monitor reports a burst of changes to a new network once")
  func reportsBurstOnce() async throws {
    let scene = try Scene(Self.home)
    try scene.namespace.ip("route del default")
    try scene.namespace.ip("addr del 192.0.2.10/24 dev eth7")
    try scene.namespace.ip("addr add 198.51.100.10/24 dev eth7")
    try scene.namespace.ip("route add default via 198.51.100.1")
    let office = try scene.current
    try await wait(for: "the new network") { scene.changes.events == [office] }
    #expect(office.isRouted)
    // An IPv6 default route also changes the network.
    try scene.namespace.ip("addr add 2001:db8::10/64 dev eth7 nodad")
    try scene.namespace.ip("route add default via 2001:db8::1")
    let both = try scene.current
    #expect(both != office)
    try await wait(for: "the next one") { scene.changes.events == [office, both] }
    await scene.end()
  }

  @Test("the monitor does not report changes that leave the default route as it was")
  func sameDefaultRoute() async throws {
    let scene = try Scene(Self.home)
    let home = try scene.current
    // Docker makes such changes for each container: a link, an address and a route that is not the default.
    try scene.namespace.ip("link add veth0 type veth peer name veth1")
    try scene.namespace.ip("addr add 10.9.8.7/24 dev veth0")
    try scene.namespace.ip("link set veth0 up")
    try scene.namespace.ip("route add 203.0.113.0/24 via 10.9.8.1")
    // After the default route is removed and added again, the network is the same.
    try scene.namespace.ip("route del default")
    try scene.namespace.ip("route add default via 192.0.2.1")
    #expect(try scene.current == home)
    // The monitor must report this change. A wrong report about an earlier change would come before it.
    try scene.namespace.ip("addr add 192.0.2.11/24 dev eth7")
    try scene.namespace.ip("route replace default via 192.0.2.1 src 192.0.2.11")
    let moved = try scene.current
    #expect(moved != home)
    try await wait(for: "the new source address") { !scene.changes.events.isEmpty }
    #expect(scene.changes.events == [moved])
    await scene.end()
  }

  @Test("the monitor does not report the loss of the default route, and reports a new gateway")
  func lostRoute() async throws {
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

  /// The kernel sends more messages than the buffer of the socket holds, so messages are lost. The monitor
  /// takes the loss for a possible change, and reads the fingerprint.
  @Test("the monitor reports a change among more messages than its socket holds")
  func messageFlood() async throws {
    let scene = try Scene(Self.home)
    let blocked = Blocker()
    #expect(scene.loop.submit(blocked))
    // While the loop is blocked, the monitor reads no messages.
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

  @Test("stopping the monitor closes its descriptor")
  func stopClosesDescriptor() async throws {
    let scene = try Scene([])
    await scene.loopHasRun()
    let before = ProcessFootprint.now.descriptors
    await scene.monitor.stop()
    #expect(ProcessFootprint.now.descriptors < before)
    await scene.end()
  }
}
