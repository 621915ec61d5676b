import Glibc
import NetOptCore
import NetOptEngine
import NetOptTestSupport
import TestTools
import Testing

/// The resolver, with dnsmasq as the name server.
@Suite(.timeLimit(.minutes(1))) struct CachingResolverTests {
  private let v4 = IPAddress(v4: 0x7f00_0002)
  private let v6 = IPAddress(v6: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])

  @Test("the resolver queries A and AAAA records, and returns all addresses and the time to live")
  func findsBothFamilies() async throws {
    let server = try await DNSServer.start(["api.test": [v4, v6]], timeToLive: 60)
    try await withResolver(asking: [server.endpoint]) { resolver in
      let answer = try await resolver.resolve("api.test")
      #expect(Set(answer.addresses) == [v4, v6])
      #expect(answer.timeToLive == .seconds(60))
      #expect(Set(server.queries()) == [.init("api.test", "A"), .init("api.test", "AAAA")])
    }
    server.stop()
  }

  @Test("100 concurrent callers share one look-up")
  func sharesLookUp() async throws {
    let server = try await DNSServer.start(["api.test": [v4]])
    try await withResolver(asking: [server.endpoint]) { resolver in
      let answers = try await withThrowingTaskGroup { group in
        for _ in 0..<100 { group.addTask { try await resolver.resolve("api.test").addresses } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(answers == Array(repeating: [v4], count: 100))
      #expect(server.queries().count == 2)
    }
    server.stop()
  }

  @Test("a name in another case or with a final dot shares the cache entry")
  func sharesSpellings() async throws {
    let server = try await DNSServer.start(["api.test": [v4]])
    try await withResolver(asking: [server.endpoint]) { resolver in
      for name in ["api.test", "API.test", "api.test."] {
        try await #expect(resolver.resolve(name).addresses == [v4])
      }
      #expect(server.queries().count == 2)
    }
    server.stop()
  }

  @Test("a fresh look-up neither uses nor fills the cache")
  func freshLookUps() async throws {
    let server = try await DNSServer.start(["api.test": [v4]])
    try await withResolver(asking: [server.endpoint]) { resolver in
      try await #expect(resolver.resolve("api.test", fresh: true).addresses == [v4])
      try await #expect(resolver.resolve("api.test", fresh: true).addresses == [v4])
      #expect(server.queries().count == 4)
      try await #expect(resolver.resolve("api.test").addresses == [v4])
      #expect(server.queries().count == 6)
      try await #expect(resolver.resolve("api.test", fresh: true).addresses == [v4])
      try await #expect(resolver.resolve("api.test").addresses == [v4])
      #expect(server.queries().count == 8)
    }
    server.stop()
  }

  @Test("the resolver serves a stale answer while it refreshes the answer")
  func servesStaleDuringRefresh() async throws {
    let server = try await DNSServer.start(["api.test": [v4]], timeToLive: 10)
    let time = ManualTimeSource()
    try await withResolver(asking: [server.endpoint], timeSource: time) { resolver in
      try await #expect(resolver.resolve("api.test").timeToLive == .seconds(10))
      time.advance(by: .seconds(9))
      try await #expect(resolver.resolve("api.test").timeToLive == .seconds(1))
      #expect(server.queries().count == 2)
      time.advance(by: .milliseconds(1500))
      try await #expect(resolver.resolve("api.test").addresses == [v4])
      try await wait(for: "the refresh") {
        try await resolver.resolve("api.test").timeToLive == .seconds(10)
      }
      #expect(server.queries().count == 4)
    }
    server.stop()
  }

  @Test("the resolver serves a stale answer when the server is gone, but a fresh look-up fails")
  func servesStaleWithoutServer() async throws {
    let server = try await DNSServer.start(["api.test": [v4]], timeToLive: 10)
    let time = ManualTimeSource()
    try await withResolver(asking: [server.endpoint], timeSource: time) { resolver in
      _ = try await resolver.resolve("api.test")
      server.stop()
      time.advance(by: .seconds(3600))
      for _ in 0..<10 {
        try await #expect(resolver.resolve("api.test").addresses == [v4])
        time.advance(by: .seconds(2))
      }
      let error = await #expect(throws: NetOptError.self) {
        try await resolver.resolve("api.test", fresh: true)
      }
      #expect(error?.code == .resolverFailed)
    }
  }

  @Test("the error for an unknown name names the name and the server, and is cached for 30 s")
  func unknownName() async throws {
    let server = try await DNSServer.start([:])
    let time = ManualTimeSource()
    try await withResolver(asking: [server.endpoint], timeSource: time) { resolver in
      for _ in 0..<3 {
        let error = await #expect(throws: NetOptError.self) { try await resolver.resolve("unknown.test") }
        #expect(error?.code == .nameNotFound)
        #expect(error?.phase == .resolve)
        #expect(error?.underlying?.library == .ares)
        #expect(error?.message.contains("unknown.test") == true)
        #expect(error?.message.contains(server.endpoint.description) == true)
        #expect(error?.isRetryable == false)
      }
      #expect(server.queries().count == 2)
      time.advance(by: .seconds(30))
      await #expect(throws: NetOptError.self) { try await resolver.resolve("unknown.test") }
      #expect(server.queries().count == 4)
    }
    server.stop()
  }

  /// dnsmasq truncates an answer of more than 512 bytes, and c-ares repeats the query over TCP.
  @Test("the resolver gets an answer with 100 addresses over TCP")
  func longAnswer() async throws {
    let addresses = (1...100).map { IPAddress(v4: 0x7f02_0000 + $0) }
    let server = try await DNSServer.start(["many.test": addresses])
    try await withResolver(asking: [server.endpoint]) { resolver in
      try await #expect(Set(resolver.resolve("many.test").addresses) == Set(addresses))
    }
    server.stop()
  }

  @Test("after a closed port and a silent server, the resolver queries the next server")
  func nextServer() async throws {
    let silent = try FakeNameServer(.holding)
    let server = try await DNSServer.start(["api.test": [v4]])
    let nobody = IPEndpoint(.loopback, port: 1)
    let servers = [nobody, silent.endpoint, server.endpoint]
    try await withResolver(asking: servers, timeout: .milliseconds(500)) { resolver in
      try await #expect(resolver.resolve("api.test").addresses == [v4])
      #expect(silent.questionCount > 0)
    }
    silent.stop()
    server.stop()
  }

  /// c-ares closes its sockets when no look-up is under way. It opens new sockets for the next look-up, often
  /// with the same numbers.
  @Test("300 look-ups in sequence succeed with two queries each")
  func sequentialLookUps() async throws {
    let names = (0..<300).map { "host-\($0).test" }
    let server = try await DNSServer.start(Dictionary(uniqueKeysWithValues: names.map { ($0, [v4]) }))
    try await withResolver(asking: [server.endpoint]) { resolver in
      for name in names { try await #expect(resolver.resolve(name).addresses == [v4]) }
      #expect(server.queries().count == 600)
    }
    server.stop()
  }

  /// The look-ups send 200 queries at once. These fit into the receive buffer of dnsmasq's socket, so none is
  /// lost.
  @Test("100 concurrent look-ups of different names succeed")
  func concurrentLookUps() async throws {
    let names = (0..<100).map { "host-\($0).test" }
    let server = try await DNSServer.start(Dictionary(uniqueKeysWithValues: names.map { ($0, [v4]) }))
    try await withResolver(asking: [server.endpoint]) { resolver in
      let found = try await withThrowingTaskGroup { group in
        for name in names { group.addTask { try await resolver.resolve(name).addresses == [v4] } }
        return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
      }
      #expect(found == names.count)
    }
    server.stop()
  }

  // MARK: Without a query to the server

  @Test("an IP address resolves to itself for 3600 s without a query")
  func ipAddresses() async throws {
    let server = try await DNSServer.start([:])
    try await withResolver(asking: [server.endpoint]) { resolver in
      for address in [v4, v6] {
        let answer = try await resolver.resolve(address.description)
        #expect(answer == ResolvedAddresses([address], timeToLive: .seconds(3600)))
      }
      #expect(server.queries().isEmpty)
    }
    server.stop()
  }

  @Test(
    "an invalid host name fails with nameNotFound without a query",
    arguments: ["", ".", "a b.test", "a..test", "127.1", "[::1]", "über.test", "a\0b.test"])
  func invalidNames(text: String) async throws {
    let server = try await DNSServer.start([:])
    try await withResolver(asking: [server.endpoint]) { resolver in
      let error = await #expect(throws: NetOptError.self) { try await resolver.resolve(text) }
      #expect(error?.code == .nameNotFound)
      #expect(server.queries().isEmpty)
    }
    server.stop()
  }

  /// The system may write resolv.conf some time after netopt has noticed a change of the network. So the
  /// resolver checks the file before each look-up.
  @Test(
    "the resolver uses the new name servers after resolv.conf changes",
    .enabled("port 53 takes root") { getuid() == 0 })
  func changedSystemFile() async throws {
    let addresses = IPAddress.freshLoopback(4)
    let servers = [
      try await DNSServer.start(["api.test": [addresses[2]]], on: addresses[0], port: 53),
      try await DNSServer.start(["api.test": [addresses[3]]], on: addresses[1], port: 53),
    ]
    defer { for server in servers { server.stop() } }
    var configuration = ResolverConfiguration()
    configuration.timeout = .seconds(5)
    configuration.systemFile = try TemporaryDirectory.make("resolver") + "/resolv.conf"
    let loop = try EventLoop()
    let resolver = try CachingResolver(loop, configuration)
    for (server, answer) in zip(addresses[..<2], addresses[2...]) {
      try FileBytes.replace(
        configuration.systemFile, with: Array("nameserver \(server)\n".utf8), mode: 0o600,
        as: "the configuration", in: .resolve)
      let found = try await resolver.resolve("api.test", fresh: true)
      #expect(found.addresses == [answer])
    }
    await resolver.shutdown()
    loop.stop()
  }

  @Test("localhost resolves from the hosts file for 1 s without a query")
  func hostsFile() async throws {
    let server = try await DNSServer.start([:])
    try await withResolver(asking: [server.endpoint]) { resolver in
      let answer = try await resolver.resolve("localhost")
      #expect(answer.addresses.contains(.loopback))
      #expect(answer.timeToLive == .seconds(1))
      #expect(server.queries().isEmpty)
    }
    server.stop()
  }
}
