import NetOptCore
import NetOptTestSupport
import Testing

@Suite struct FreePortTests {
  @Test("a port is free on all given addresses, and is given out only once") func freePort() throws {
    let addresses = IPAddress.freshLoopback(2)
    let ports = try (0..<100).map { _ in try FreePort.find(on: addresses) }
    #expect(Set(ports).count == 100)
    for address in addresses {
      let server = try LoopbackServer(.closing, on: address, port: ports[0])
      #expect(server.endpoint == IPEndpoint(address, port: ports[0]))
      server.stop()
    }
  }

  @Test("an address of another machine is an error") func foreignAddress() throws {
    let address = try #require(IPAddress("192.0.2.1"))
    #expect(throws: TestSupportError.self) { try FreePort.find(on: [address]) }
  }

  @Test("fresh addresses are distinct loopback addresses, and none ends in 0 or 255") func freshAddresses() {
    let addresses = IPAddress.freshLoopback(600)
    #expect(Set(addresses).count == 600)
    #expect(addresses.allSatisfy { $0.scope == .loopback && ![0, 255].contains($0.bytes[3]) })
  }
}
