import NetOptCore
import Testing

@testable import NetOptEngine

/// Tests when a burst of messages from the kernel has ended, and which fingerprints count as a new network.
@Suite struct NetworkChangeTests {
  /// The fingerprint of a network with the gateway 192.0.2.`last`.
  private static func network(_ last: UInt32) -> NetworkFingerprint {
    let route = DefaultRoute(gateway: IPAddress(v4: 0xc000_0200 + last), interface: "eth0")
    return NetworkFingerprint([.init(route: route, source: IPAddress(v4: 0xc000_0264))])
  }

  private let home = network(1)
  private let office = network(2)
  /// The fingerprint of a machine without a default route.
  private let nowhere = NetworkFingerprint([])

  /// The moment this many milliseconds after the zero of the monotonic clock.
  private func at(_ milliseconds: Int64) -> MonotonicInstant {
    MonotonicInstant(nanoseconds: milliseconds * 1_000_000)
  }

  @Test("the fingerprint is due 500 ms after the last message, and a different one is a new network")
  func dueAfterSilence() {
    var change = NetworkChange(home)
    #expect(change.due == nil)
    change.noteMessage(at: at(0))
    #expect(change.due == at(500))
    change.noteMessage(at: at(400))
    #expect(change.due == at(900))
    let isNew = change.update(office)
    #expect(isNew)
    #expect(change.network == office)
    #expect(change.due == nil)
  }

  @Test("while a link keeps flapping, the fingerprint is due 5 s after the first message")
  func flappingLink() {
    var change = NetworkChange(home)
    for time in stride(from: Int64(0), through: 10_000, by: 100) { change.noteMessage(at: at(time)) }
    #expect(change.due == at(5000))
    let isNew = change.update(home)
    #expect(!isNew)
    change.noteMessage(at: at(10_100))
    #expect(change.due == at(10_600))
  }

  @Test("a message without a change of the fingerprint is not a new network")
  func sameNetwork() {
    var change = NetworkChange(home)
    change.noteMessage(at: at(0))
    let isNew = change.update(home)
    #expect(!isNew)
    #expect(change.network == home)
  }

  @Test("the loss of the default route is not a new network, and a different route later is")
  func lostRoute() {
    var change = NetworkChange(home)
    var isNew = change.update(nowhere)
    #expect(!isNew)
    isNew = change.update(home)
    #expect(!isNew)
    isNew = change.update(nowhere)
    #expect(!isNew)
    isNew = change.update(office)
    #expect(isNew)
    // A machine that starts before its network is up gets a new network.
    var early = NetworkChange(nowhere)
    isNew = early.update(home)
    #expect(isNew)
  }
}

/// Tests what the fingerprint of a network depends on.
@Suite struct NetworkFingerprintTests {
  /// The fingerprint of a network with one default route.
  ///
  /// - Parameter source: the address from which this machine sends on the route.
  private func fingerprint(_ gateway: String?, _ interface: String, _ source: String?) -> NetworkFingerprint {
    NetworkFingerprint([
      .init(
        route: DefaultRoute(gateway: gateway.flatMap { IPAddress($0) }, interface: interface),
        source: source.flatMap { IPAddress($0) })
    ])
  }

  @Test("the fingerprint depends on gateway, interface and source address, and is the same in every run")
  func inputs() {
    let all = [
      fingerprint("192.0.2.1", "eth0", "192.0.2.7"), fingerprint("192.0.2.2", "eth0", "192.0.2.7"),
      fingerprint("192.0.2.1", "eth1", "192.0.2.7"), fingerprint("192.0.2.1", "eth0", "192.0.2.8"),
      fingerprint("192.0.2.1", "eth0", nil), fingerprint(nil, "eth0", "192.0.2.7"), NetworkFingerprint([]),
    ]
    #expect(Set(all).count == all.count)
    #expect(all.allSatisfy { $0.description.count == 16 })
    #expect(all.map(\.isRouted) == [true, true, true, true, true, true, false])
    // Files are named after the fingerprint, so it must be the same in every run.
    #expect(all[0].description == "926ac8c710b90feb")
  }

  /// The lower half of an IPv6 source address may change every day (temporary addresses, RFC 8981).
  @Test("the fingerprint depends only on the network half of an IPv6 source address")
  func ipv6Source() {
    #expect(
      fingerprint("fe80::1", "eth0", "2001:db8::1") == fingerprint("fe80::1", "eth0", "2001:db8::2"))
    #expect(fingerprint("fe80::1", "eth0", "2001:db8::1").description == "1572a8ed31f46690")
    #expect(
      fingerprint("fe80::1", "eth0", "2001:db8::1") != fingerprint("fe80::1", "eth0", "2001:db8:1::1"))
  }
}
