import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@Suite struct DNSServerTests {
  @Test("the DNS server answers queries and records them") func answersAndRecordsQueries() async throws {
    let addresses = try ["192.0.2.2", "192.0.2.1", "2001:db8::1"].map { try #require(IPAddress($0)) }
    let server = try await DNSServer.start(["a.example": addresses], timeToLive: 7)
    defer { server.stop() }
    let client = DNSClient(server.endpoint)
    #expect(
      try client.ask("a.example", type: 1) == .init(code: 0, addresses: Array(addresses[..<2]), timeToLive: 7)
    )
    #expect(try client.ask("a.example", type: 28).addresses == [addresses[2]])
    #expect(try client.ask("b.example", type: 1).code == 3)
    #expect(
      server.queries() == [.init("a.example", "A"), .init("a.example", "AAAA"), .init("b.example", "A")])
  }

  @Test("the error for a port in use says so") func portInUse() async throws {
    let server = try await DNSServer.start([:])
    defer { server.stop() }
    let error = try #require(
      await #expect(throws: TestSupportError.self) {
        _ = try await DNSServer.start([:], port: server.endpoint.port)
      })
    #expect(error.description.contains("in use"))
  }
}
