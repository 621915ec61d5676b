import NetOptCore
@testable import NetOptEngine
import Testing

@Suite struct ResolverConfigurationTests {
  @Test(
    "a server is an IP address with an optional port, and the default port is 53",
    arguments: [
      ("127.0.0.1", "127.0.0.1:53"), ("127.0.0.1:5353", "127.0.0.1:5353"), ("::1", "[::1]:53"),
      ("[::1]", "[::1]:53"), ("[::1]:5353", "[::1]:5353"), ("2001:db8::1:5353", "[2001:db8::1:5353]:53"),
      ("127.0.0.1:65535", "127.0.0.1:65535"),
    ])
  func readsServers(text: String, endpoint: String) throws {
    var configuration = ResolverConfiguration()
    configuration.servers = [text]
    #expect(try configuration.serverEndpoints().map(\.description) == [endpoint])
  }

  @Test(
    "an entry other than an IP address with an optional port is refused and quoted",
    arguments: [
      "", " ", "dns.example.com", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:+53",
      "127.0.0.1:5 3",
      "127.0.0.1:53:53", "127.0.0.1,127.0.0.2", "[::1", "[::1]5353", "[::1]:", "[127.0.0.1]:53", "::1]:53",
      "[]:53",
      "fe80::1%lo", "127.0.0.1:５３", ":53", "127.1",
    ])
  func refusesInvalidServers(text: String) {
    var configuration = ResolverConfiguration()
    configuration.servers = ["127.0.0.1", text]
    let error = #expect(throws: NetOptError.self) { try configuration.serverEndpoints() }
    #expect(error?.code == .invalidConfiguration)
    #expect(error?.message.contains("\"\(text)\"") == true)
  }

  @Test("a timeout or a number of tries out of range is refused, and the defaults are valid")
  func refusesOutOfRange() {
    for timeout in [Duration.zero, .microseconds(999), .seconds(61), .seconds(-1)] {
      var configuration = ResolverConfiguration()
      configuration.timeout = timeout
      #expect(throws: NetOptError.self) { try configuration.check() }
    }
    for tries in [0, -1, 11] {
      var configuration = ResolverConfiguration()
      configuration.tries = tries
      #expect(throws: NetOptError.self) { try configuration.check() }
    }
    #expect(throws: Never.self) { try ResolverConfiguration().check() }
  }

  @Test("creating a resolver with an invalid configuration fails")
  func invalidConfiguration() throws {
    let loop = try EventLoop()
    var configuration = ResolverConfiguration()
    configuration.servers = ["dns.example.com"]
    let error = #expect(throws: NetOptError.self) { try CachingResolver(loop, configuration) }
    #expect(error?.code == .invalidConfiguration)
    loop.stop()
  }
}
