import Glibc
import NetOptCore
import NetOptEngine
import NetOptTestSupport
import TestTools
import Testing

/// Against dnsmasq.
@Suite(.timeLimit(.minutes(1))) struct CachingResolverTests {
  private let v4 = IPAddress(v4: 0x7f00_0002)
  private let v6 = IPAddress(v6: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])

  @Test func findsTheAddressesOfBothFamilies() async throws {
    let server = try await DNSServer.start(["api.test": [v4, v6]], timeToLive: 60)
    try await withResolver(asking: [server.endpoint]) { resolver in
      let answer = try await resolver.resolve("api.test")
      #expect(Set(answer.addresses) == [v4, v6])
      #expect(answer.timeToLive == .seconds(60))
      #expect(Set(server.queries()) == [.init("api.test", "A"), .init("api.test", "AAAA")])
    }
    server.stop()
  }

  @Test func asksOnceForManyWhoWait() async throws {
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

  @Test func asksOnceForAllSpellingsOfAName() async throws {
    let server = try await DNSServer.start(["api.test": [v4]])
    try await withResolver(asking: [server.endpoint]) { resolver in
      for name in ["api.test", "API.test", "api.test."] {
        try await #expect(resolver.resolve(name).addresses == [v4])
      }
      #expect(server.queries().count == 2)
    }
    server.stop()
  }

  @Test func aFreshLookUpNeitherUsesNorFillsTheCache() async throws {
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

  @Test func servesAnExpiredAnswerWhileItIsRefreshed() async throws {
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

  @Test func servesAnExpiredAnswerWhenTheServerIsGone() async throws {
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

  @Test func remembersThatANameIsUnknown() async throws {
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

  /// dnsmasq cuts an answer of more than 512 bytes, and c-ares asks again over TCP.
  @Test func takesALongAnswerOverTCP() async throws {
    let addresses = (1...100).map { IPAddress(v4: 0x7f02_0000 + $0) }
    let server = try await DNSServer.start(["many.test": addresses])
    try await withResolver(asking: [server.endpoint]) { resolver in
      try await #expect(Set(resolver.resolve("many.test").addresses) == Set(addresses))
    }
    server.stop()
  }

  @Test func goesOnToTheNextServer() async throws {
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

  /// c-ares closes its sockets when nothing is under way and opens them again for the next look-up, often with the
  /// same number.
  @Test func looksUpOneNameAfterTheOther() async throws {
    let names = (0..<300).map { "host-\($0).test" }
    let server = try await DNSServer.start(Dictionary(uniqueKeysWithValues: names.map { ($0, [v4]) }))
    try await withResolver(asking: [server.endpoint]) { resolver in
      for name in names { try await #expect(resolver.resolve(name).addresses == [v4]) }
      #expect(server.queries().count == 600)
    }
    server.stop()
  }

  /// As many as a socket's receive buffer holds the questions of.
  @Test func looksUpManyNamesAtOnce() async throws {
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

  // MARK: Without a server

  @Test func anAddressIsItsOwnAnswer() async throws {
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

  @Test(arguments: ["", ".", "a b.test", "a..test", "127.1", "[::1]", "über.test", "a\0b.test"])
  func whatIsNoNameIsNotAskedFor(text: String) async throws {
    let server = try await DNSServer.start([:])
    try await withResolver(asking: [server.endpoint]) { resolver in
      let error = await #expect(throws: NetOptError.self) { try await resolver.resolve(text) }
      #expect(error?.code == .nameNotFound)
      #expect(server.queries().isEmpty)
    }
    server.stop()
  }

  /// A file that is written a while after the routes have changed.
  @Test(.enabled("port 53 takes root") { getuid() == 0 })
  func theSystemsServersAreReadAgainWhenTheyHaveChanged() async throws {
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

  @Test func theHostsFileComesFirst() async throws {
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
