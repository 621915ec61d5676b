import NetOptCore
@testable import NetOptEngine
import Testing

@Suite struct AddressOrderTests {
  @Test func familiesAlternateWithIPv6First() {
    #expect(
      sorted("192.0.2.1 192.0.2.2 2001:db8::1 2001:db8::2") == "2001:db8::1 192.0.2.1 2001:db8::2 192.0.2.2")
  }

  @Test("the surplus addresses of the longer family come last")
  func longerFamily() {
    #expect(
      sorted("192.0.2.1 192.0.2.2 192.0.2.3 2001:db8::1") == "2001:db8::1 192.0.2.1 192.0.2.2 192.0.2.3")
    #expect(
      sorted("192.0.2.1 2001:db8::1 2001:db8::2 2001:db8::3")
        == "2001:db8::1 192.0.2.1 2001:db8::2 2001:db8::3")
  }

  @Test("an unreachable family comes last, and the families alternate when both are unreachable")
  func unreachableFamily() {
    let addresses = "192.0.2.1 2001:db8::1 192.0.2.2 2001:db8::2"
    #expect(sorted(addresses, reachable: [.v4]) == "192.0.2.1 192.0.2.2 2001:db8::1 2001:db8::2")
    #expect(sorted(addresses, reachable: [.v6]) == "2001:db8::1 2001:db8::2 192.0.2.1 192.0.2.2")
    #expect(sorted(addresses, reachable: []) == "2001:db8::1 192.0.2.1 2001:db8::2 192.0.2.2")
  }

  @Test("addresses of a single family keep their order, reachable or not")
  func singleFamily() {
    #expect(sorted("192.0.2.2 192.0.2.1", reachable: []) == "192.0.2.2 192.0.2.1")
    #expect(sorted("2001:db8::2 2001:db8::1", reachable: [.v4]) == "2001:db8::2 2001:db8::1")
    #expect(sorted("") == "")
  }

  @Test("this host has a source address for loopback and none for broadcast")
  func sourceAddresses() {
    #expect(SourceAddress.fits(IPAddress(v4: 0x7f00_0001)))
    #expect(!SourceAddress.fits(IPAddress(v4: 0xffff_ffff)))
  }

  /// Sorts addresses. The addresses are given and returned as text, with spaces between them.
  ///
  /// - Parameter reachable: the families that this host can reach.
  private func sorted(_ text: String, reachable: Set<IPAddress.Family> = [.v4, .v6]) -> String {
    let addresses = text.split(separator: " ").compactMap { IPAddress($0) }
    return AddressOrder.sorted(addresses) { reachable.contains($0.family) }
      .map(\.description).joined(separator: " ")
  }
}
