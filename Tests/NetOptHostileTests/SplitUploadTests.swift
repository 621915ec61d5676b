import NetOpt
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// A POST over TLS of which the network takes only a part. libcurl from 8.7 on passes head and body to one
/// call of SSL_write(3), which is several records. When the connection breaks between them, the server has the
/// head, although SSL_write has reported nothing.
@Suite struct SplitUploadTests {
  /// The case of the scenario that the test uses. `HostileServerTests` checks that every scenario has a case.
  static let cases: [HostileCase] = .fails(as: .lost, ["reset-behind-the-head"])

  /// The buffers of the namespace's sockets hold one TLS record (tcp(7)).
  @Test(
    "a POST is sent once when its connection breaks between two of its TLS records",
    .enabled("\(NetworkNamespace.missing)") { NetworkNamespace.isAvailable },
    arguments: 1...8 as ClosedRange<UInt64>)
  func partialWrites(_ seed: UInt64) async throws {
    let namespace = try NetworkNamespace()
    defer { namespace.end() }
    try namespace.run {
      try TextFile.write("4096 16384 16384", to: "/proc/sys/net/ipv4/tcp_wmem")
      try TextFile.write("4096 4096 4096", to: "/proc/sys/net/ipv4/tcp_rmem")
    }
    let server = try await HostileServer(in: namespace)
    let client = try namespace.run { try NetOptClient(server.clientConfiguration) }
    var random = SplitMix64(seed: seed)
    for number in 0..<4 {
      let host = "reset-behind-the-head--split-\(number).hostile.test"
      var request = try NetOptRequest(.post, "https://\(host):\(server.secure.port)/broken?q=\(number)")
      request.options.routing = .pinned(server.secure.address)
      request.options.timeout = .seconds(20)
      let count = 20_000 + Int(random.below(100_000))
      request.body = .bytes([UInt8](repeating: 0x61, count: count))
      let outcome = await Outcome(of: request, by: client)
      #expect(outcome.fault(.fails(.lost), for: number) == nil, "\(count) bytes")
      #expect(try await server.received(by: host) == ["POST \(number)"], "\(count) bytes")
    }
    #expect(server.newFaults().isEmpty)
    await client.shutdown()
  }
}
