import NetOpt
import NetOptCore
import NetOptRouting
import NetOptTestSupport
import TestTools
import Testing

/// Background probes and warm-ups.
@Suite struct BackgroundProbesTests {
  /// Whether this machine has an established connection to an endpoint, according to /proc/net/tcp (proc(5)).
  private func isConnected(to endpoint: IPEndpoint) throws -> Bool {
    let bytes = try FileBytes.read("/proc/net/tcp", upTo: 1 << 22, as: "the connections", in: .connect)
    let table = String(decoding: bytes, as: UTF8.self)
    // The table has the address as one hexadecimal number in the byte order of the machine: its last byte
    // comes first. The port has four digits.
    let digits = endpoint.address.bytes.reversed().map { byte in
      (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
    }.joined()
    let port = String(Int(endpoint.port) + 0x10000, radix: 16, uppercase: true).dropFirst()
    // The third column is the remote endpoint; 01 means that the connection is established.
    return table.contains(" \(digits):\(port) 01 ")
  }

  /// A circuit breaker is open for 5 s at first, and then half-open. The test sends no request in this time,
  /// so only a background probe can find that the endpoint works again.
  @Test("a background probe finds an endpoint that comes back within one half-open period")
  func returningEndpoint() async throws {
    let addresses = IPAddress.freshLoopback(2)
    let port = try FreePort.find(on: addresses)
    var mortal = try await NginxOrigin.start(for: ["api.test"], on: [addresses[0]], port: port)
    let other = try await NginxOrigin.start(for: ["api.test"], on: [addresses[1]], port: port)
    let dns = try await DNSServer.start(["api.test": [addresses[1]]])
    defer {
      mortal.stop()
      other.stop()
      dns.stop()
    }
    var configuration = ClientConfiguration()
    configuration.list = .list(
      EndpointList(hosts: ["api.test": HostEntry(port: port, endpoints: [ListedEndpoint(addresses[0])])]))
    configuration.tls.caFile = try await TestCertificates.authorityFile()
    configuration.dns.servers = [dns.endpoint.description]
    configuration.proxy = .none
    configuration.rankingHistory = .none
    let client = try NetOptClient(configuration)
    let request = try NetOptRequest(.get, "https://api.test:\(port)/")
    #expect(try await client.execute(request).remote?.address == addresses[0])
    mortal.stop()
    var response = try await client.execute(request)
    #expect(response.remote?.address == addresses[1])
    // The requests need fresh connections: a request that continues on the pooled connection to the DNS
    // address does not consult the list.
    var fresh = request
    fresh.options.connection = .fresh
    while response.route.fallback != .circuitsOpen { response = try await client.execute(fresh) }
    let opened = SystemTimeSource().now()
    mortal = try await NginxOrigin.start(for: ["api.test"], on: [addresses[0]], port: port)
    try await wait(for: "a probe that finds it", within: .seconds(20)) {
      try isConnected(to: IPEndpoint(addresses[0], port: port))
    }
    // The circuit breaker is open for 5 s, or up to a fifth longer because of jitter. The rest is for a busy
    // machine.
    #expect(SystemTimeSource().now() - opened < .seconds(8))
    try await wait(for: "a request that goes there") {
      try await client.execute(fresh).remote?.address == addresses[0]
    }
    await client.shutdown()
  }

  @Test("a warm-up opens the connection of the first request and reports the hosts that fail")
  func warmUp() async throws {
    // DNS does not know the host. Otherwise, on a busy machine, the connection to a DNS address might be
    // ready before the connection to a listed address.
    let lab = try await Lab([.refuses, .works], isInDNS: false)
    defer { lab.stop() }
    let client = try await lab.client { $0.probing.atStart = false }
    let failures = await client.warmUp(hosts: [Lab.host, "nowhere.test", "no host"])
    #expect(failures.keys.sorted() == ["no host", "nowhere.test"])
    #expect(failures["nowhere.test"]?.code == .nameNotFound)
    #expect(failures["no host"]?.code == .invalidRequest)
    let response = try await client.execute(try lab.request())
    #expect(response.reused, "\(response.route)")
    #expect(response.version == .http2)
    #expect(response.remote?.address == lab.listed[1])
    #expect(try await lab.log(1).count == 1)
    await client.shutdown()
    let late = await client.warmUp(hosts: [Lab.host])
    #expect(late[Lab.host]?.code == .shutDown)
  }

  /// A warm-up sends no request, so none of its legs wins. The client still learns which endpoint was not
  /// ready, and sends the next request to the endpoint to which it has a connection.
  @Test(
    "a warm-up learns which endpoint is slow, and the next request goes to the other",
    arguments: [LoopbackServer.Behaviour.blackHole, .silent])
  func slowWarmUp(_ behaviour: LoopbackServer.Behaviour) async throws {
    let lab = try await Lab([.behaves(behaviour), .works], isInDNS: false)
    defer { lab.stop() }
    let client = try await lab.client {
      // The weights make the client try the first endpoint first as long as it knows nothing about them.
      $0.list = .list(lab.weighted)
      $0.probing.atStart = false
    }
    #expect(await client.warmUp(hosts: [Lab.host]).isEmpty)
    let response = try await client.execute(try lab.request())
    #expect(response.route.legs.map(\.outcome) == [.won], "\(response.route)")
    #expect(response.reused && response.remote?.address == lab.listed[1])
    await client.shutdown()
  }
}
