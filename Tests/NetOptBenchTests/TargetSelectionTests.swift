import NetOptBench
import NetOptCore
import Testing

@Suite struct TargetSelectionTests {
  private let origin = Origin(.https, host: "api.example.com")
  private let v4 = BenchTarget(Fixtures.first, port: 443)
  private let v6: BenchTarget

  init() throws { v6 = BenchTarget(try #require(IPAddress("2001:db8::7")), port: 443) }

  /// Selects targets. Returns their names, and the codes of the warnings. `listed` has the endpoints of the
  /// host in the list; `nil` stands for a list without the host.
  private func select(
    _ kinds: Set<BenchTarget.Kind> = [.ip, .dns], _ family: IPAddress.Family? = nil, _ listed: [BenchTarget]?
  ) -> (ids: [String], warnings: [String]) {
    let selection = TargetSelection(kinds, family: family, origin: origin, listed: listed)
    return (selection.targets.map(\.id), selection.warnings.map(\.code))
  }

  @Test("the targets are the addresses in the order of the list, then DNS")
  func targetOrder() {
    #expect(select([.ip, .dns], nil, [v6, v4]) == (["2001:db8::7", "203.0.113.7", "dns"], []))
  }

  @Test("the selection has only targets of the requested kinds")
  func requestedKinds() {
    #expect(select([.ip], nil, [v4]) == (["203.0.113.7"], []))
    #expect(select([.dns], nil, [v4]) == (["dns"], []))
    #expect(select([.dns], nil, nil) == (["dns"], []))
  }

  @Test("the selection excludes the other address family, and warns if no address is left")
  func families() {
    #expect(select([.ip, .dns], .v6, [v4, v6]) == (["2001:db8::7", "dns"], []))
    #expect(select([.ip, .dns], .v6, [v4]) == (["dns"], ["list-family"]))
  }

  @Test("the selection warns about a host that is not in the list")
  func unlistedHost() {
    #expect(select([.ip, .dns], nil, nil) == (["dns"], ["no-list"]))
    #expect(select([.ip], nil, nil) == ([], ["no-list"]))
  }

  @Test("the selection warns about a list for another port and does not use it")
  func otherPort() {
    #expect(select([.ip, .dns], nil, [BenchTarget(Fixtures.first, port: 8443)]) == (["dns"], ["list-port"]))
  }
}
