import NetOptCore
import Testing

@testable import NetOptEngine

@Suite struct NetworkChangeTests {
  private static func network(_ last: UInt32) -> NetworkFingerprint {
    let route = DefaultRoute(gateway: IPAddress(v4: 0xc000_0200 + last), interface: "eth0")
    return NetworkFingerprint([.init(route: route, source: IPAddress(v4: 0xc000_0264))])
  }

  private let home = network(1)
  private let office = network(2)
  private let nowhere = NetworkFingerprint([])

  private func at(_ milliseconds: Int64) -> MonotonicInstant {
    MonotonicInstant(nanoseconds: milliseconds * 1_000_000)
  }

  @Test func isLookedAtAfterHalfASecondOfSilence() {
    var change = NetworkChange(home)
    #expect(change.due == nil)
    change.heard(at: at(0))
    #expect(change.due == at(500))
    change.heard(at: at(400))
    #expect(change.due == at(900))
    let isNew = change.looked(office)
    #expect(isNew)
    #expect(change.network == office)
    #expect(change.due == nil)
  }

  @Test func aLinkThatFlapsForEverIsLookedAtAllTheSame() {
    var change = NetworkChange(home)
    for time in stride(from: Int64(0), through: 10_000, by: 100) { change.heard(at: at(time)) }
    #expect(change.due == at(5000))
    let isNew = change.looked(home)
    #expect(!isNew)
    change.heard(at: at(10_100))
    #expect(change.due == at(10_600))
  }

  @Test func whatLeavesTheWayOutAsItWasIsNoChange() {
    var change = NetworkChange(home)
    change.heard(at: at(0))
    let isNew = change.looked(home)
    #expect(!isNew)
    #expect(change.network == home)
  }

  @Test func losingTheRouteIsNoNewNetworkAndFindingAnotherOneIs() {
    var change = NetworkChange(home)
    var isNew = change.looked(nowhere)
    #expect(!isNew)
    isNew = change.looked(home)
    #expect(!isNew)
    isNew = change.looked(nowhere)
    #expect(!isNew)
    isNew = change.looked(office)
    #expect(isNew)
    // A machine that starts before its network comes into one.
    var early = NetworkChange(nowhere)
    isNew = early.looked(home)
    #expect(isNew)
  }
}

@Suite struct NetworkFingerprintTests {
  private func fingerprint(_ gateway: String?, _ interface: String, _ source: String?) -> NetworkFingerprint {
    NetworkFingerprint([
      .init(
        route: DefaultRoute(gateway: gateway.flatMap { IPAddress($0) }, interface: interface),
        source: source.flatMap { IPAddress($0) })
    ])
  }

  @Test func dependsOnGatewayInterfaceAndSource() {
    let all = [
      fingerprint("192.0.2.1", "eth0", "192.0.2.7"), fingerprint("192.0.2.2", "eth0", "192.0.2.7"),
      fingerprint("192.0.2.1", "eth1", "192.0.2.7"), fingerprint("192.0.2.1", "eth0", "192.0.2.8"),
      fingerprint("192.0.2.1", "eth0", nil), fingerprint(nil, "eth0", "192.0.2.7"), NetworkFingerprint([]),
    ]
    #expect(Set(all).count == all.count)
    #expect(all.allSatisfy { $0.description.count == 16 })
    #expect(all.map(\.isRouted) == [true, true, true, true, true, true, false])
    // The same in every run: it names files.
    #expect(all[0].description == "926ac8c710b90feb")
  }

  /// The lower half changes every day where addresses are temporary.
  @Test func ofAnIPv6SourceTheNetworkCounts() {
    #expect(
      fingerprint("fe80::1", "eth0", "2001:db8::1") == fingerprint("fe80::1", "eth0", "2001:db8::2"))
    #expect(
      fingerprint("fe80::1", "eth0", "2001:db8::1") != fingerprint("fe80::1", "eth0", "2001:db8:1::1"))
  }
}
