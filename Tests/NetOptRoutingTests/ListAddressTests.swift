import FoundationEssentials
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptRouting

/// Tests which addresses a list may contain. The rules of Python's `ipaddress`, which follows the IANA
/// registries independently of netopt, decide about random addresses.
@Suite struct ListAddressTests {
  /// A Python program that reads an address from each line. For each address it prints 1 when a list must
  /// accept it, and 0 otherwise. A list accepts addresses that are global or for documentation. For an IPv6
  /// address that contains IPv4 addresses, such as an IPv4-mapped address, these decide.
  private static let program = """
    import ipaddress, sys
    documentation = [ipaddress.ip_network(n) for n in
        ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20")]
    # Versions of Python differ in what they say of these.
    special = [ipaddress.ip_network(n) for n in ("192.0.0.0/24", "192.88.99.0/24", "64:ff9b:1::/48", "2001::/23")]
    def inside(a):
        if a.version == 4: return []
        n = int(a)
        found = [a.ipv4_mapped, a.sixtofour]
        if n >> 32 in (0, 0xffff, 0xffff0000, 0x64ff9b << 64): found.append(ipaddress.IPv4Address(n & 0xffffffff))
        if n >> 125 == 1 and n >> 32 & 0xfcffffff == 0x5efe: found.append(ipaddress.IPv4Address(n & 0xffffffff))
        return [f for f in found if f is not None]
    def is_global(a):
        if any(a.version == d.version and a in d for d in documentation): return all(map(is_global, inside(a)))
        if any(a.version == s.version and a in s for s in special): return False
        return (a.is_global and not a.is_multicast and not a.is_reserved and not a.is_unspecified
            or a.version == 6 and bool(inside(a)) and not a.is_loopback and not a.is_unspecified) and all(map(is_global, inside(a)))
    for line in sys.stdin:
        print(int(is_global(ipaddress.ip_address(line.strip()))))
    """

  /// A random address: an IPv4 address, an IPv6 address that contains an IPv4 address, or another IPv6
  /// address. Most of the addresses are in a range of the IANA registries that is not global.
  private static func address(_ random: inout SplitMix64) -> IPAddress {
    // The first bytes of the IPv4 addresses.
    let starts: [[UInt8]] = [
      [10], [172, 16], [192, 168], [127], [169, 254], [100, 64], [198, 18], [198, 19], [192, 0, 0],
      [192, 0, 2], [192, 88, 99], [0],
      [224], [240], [8, 8], [1],
    ]
    func filled(_ start: [UInt8], _ count: Int) -> [UInt8] {
      start + (0..<count - start.count).map { _ in UInt8(random.below(256)) }
    }
    let v4 = filled(starts[Int(random.below(UInt64(starts.count)))], 4)
    let zeros = [UInt8](repeating: 0, count: 10)
    return switch random.below(13) {
    case 0: IPAddress(v6: zeros + [0xff, 0xff] + v4)
    case 1: IPAddress(v6: zeros + [0, 0] + v4)
    case 2: IPAddress(v6: zeros.prefix(8) + [0xff, 0xff, 0, 0] + v4)
    case 3: IPAddress(v6: [0, 0x64, 0xff, 0x9b] + zeros.prefix(8) + v4)
    case 4: IPAddress(v6: filled([0x20, 0x02] + v4, 16))
    case 5:
      IPAddress(
        v6: filled(
          [[0x20, 0x01, 0, 0], [0xfc], [0xfe, 0x80], [0xff], [0, 0x64, 0xff, 0x9b, 0, 1]][
            Int(random.below(5))], 16))
    case 6:
      IPAddress(
        v6: filled([[0x20, 0x01, 0x0d, 0xb8], [0x26], [0x2a], [0x20, 0x01, 2]][Int(random.below(4))], 16))
    case 7: IPAddress(v6: filled([], 16))
    case 8:
      IPAddress(
        v6: filled([[0x20, 0x02, 8, 8, 8, 8], [0x2a]][Int(random.below(2))], 8) + [2, 0, 0x5e, 0xfe] + v4)
    default: IPAddress(v4: v4.reduce(0) { $0 << 8 | UInt32($1) })
    }
  }

  @Test("a list accepts exactly the addresses that Python's ipaddress finds global")
  func globalAddresses() async throws {
    var random = SplitMix64(seed: 1)
    let addresses = (0..<4000).map { _ in Self.address(&random) }
    let directory = try TemporaryDirectory.make("addresses")
    try Data(Self.program.utf8).write(to: URL(fileURLWithPath: "\(directory)/check.py"))
    try Data(addresses.map { "\($0)\n" }.joined().utf8).write(
      to: URL(fileURLWithPath: "\(directory)/addresses"))
    let child = try ChildProcess(
      "/bin/sh", ["-c", "exec /usr/bin/python3 \"$0/check.py\" < \"$0/addresses\"", directory], in: directory)
    try await wait(for: "Python to end", within: .seconds(60)) { child.exitStatus() != nil }
    let verdicts = TextFile.read(child.output).split(separator: "\n")
    try #require(verdicts.count == addresses.count, "\(verdicts.last ?? "")")
    var accepted = 0
    for (address, verdict) in zip(addresses, verdicts) {
      let list = #"{"schema": 1, "serial": 1, "hosts": {"a.test": {"endpoints": [{"ip": "\#(address)"}]}}}"#
      let isAccepted = EndpointList.check(Array(list.utf8), rules: ListRules(now: Date())).list != nil
      if isAccepted { accepted += 1 }
      #expect(isAccepted == (verdict == "1"), "\(address) is \(address.scope)")
    }
    #expect(accepted > 500 && accepted < 3500)
  }
}
