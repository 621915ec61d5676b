import NetOptCore
import Testing

@testable import NetOptEngine

/// Tests the parsing of the kernel's routing tables: /proc/net/route for IPv4 and /proc/net/ipv6_route for
/// IPv6 (proc(5)).
@Suite struct DefaultRouteTests {
  @Test("the IPv4 default route is the one with the lowest metric")
  func ipv4Table() {
    // The addresses are hexadecimal numbers in little-endian byte order: 010200C0 is 192.0.2.1.
    let table = """
      Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
      wlan0\t00000000\t0102A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0
      eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0
      eth0\t000200C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0
      """
    #expect(DefaultRoute(ipv4: table)?.description == "via 192.0.2.1 dev eth0")
  }

  @Test("a default route may have an interface without a gateway")
  func noGateway() {
    let table = "Iface\nwg0\t00000000\t00000000\t0001\t0\t0\t0\t00000000\t0\t0\t0\n"
    #expect(DefaultRoute(ipv4: table)?.description == "dev wg0")
  }

  @Test(
    // An empty table, a table without routes, a route to a single network, a malformed line, and a default
    // route with a malformed gateway.
    "a table without a valid default route gives no default route",
    arguments: [
      "", "Iface\n", "Iface\neth0\t000200C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n",
      "Iface\nx y z\n",
      "Iface\neth0\t00000000\tnonsense\t0003\t0\t0\t100\t00000000\t0\t0\t0\n",
    ])
  func noDefaultRoute(table: String) {
    #expect(DefaultRoute(ipv4: table) == nil)
  }

  @Test("the IPv6 default route is read, and other entries are no default route")
  func ipv6Table() {
    let zeros = String(repeating: "0", count: 32)
    let gateway = "fe800000000000000000000000000001"
    // The second entry is the route to the network fe80::/64, the third one to ::/1. With the last entry, on the
    // interface `lo`, the kernel rejects packets that have no route.
    let table = """
      \(zeros) 00 \(zeros) 00 \(gateway) 00000400 00000001 00000000 00000003     eth0
      fe800000000000000000000000000000 40 \(zeros) 00 \(zeros) 00000100 00000001 00000000 00000001     eth0
      \(zeros) 01 \(zeros) 00 \(gateway) 00000100 00000001 00000000 00000003     tun0
      \(zeros) 00 \(zeros) 00 \(zeros) ffffffff 00000001 00000000 00200200       lo
      """
    #expect(DefaultRoute(ipv6: table)?.description == "via fe80::1 dev eth0")
    #expect(DefaultRoute(ipv6: table.split(separator: "\n").dropFirst().joined(separator: "\n")) == nil)
    #expect(DefaultRoute(ipv6: "") == nil)
  }
}
