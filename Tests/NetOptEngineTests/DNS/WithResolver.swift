import Glibc
import NetOptCore
import NetOptEngine

extension ResolverConfiguration {
  /// Returns a configuration with these name servers.
  ///
  /// - Parameter timeout: how long the resolver waits for the response to its first query to a server. The
  ///   default of 5 s is enough even on a busy machine.
  static func asking(_ servers: [IPEndpoint], timeout: Duration = .seconds(5)) -> ResolverConfiguration {
    var configuration = ResolverConfiguration()
    configuration.servers = servers.map(\.description)
    configuration.timeout = timeout
    return configuration
  }
}

/// Runs a test with a resolver that has a loop of its own. Then shuts the resolver down and stops the loop.
///
/// - Parameters:
///   - servers: the name servers that the resolver queries.
///   - timeout: see `ResolverConfiguration.asking`.
///   - timeSource: the clock by which entries of the resolver's cache expire.
func withResolver(
  asking servers: [IPEndpoint], timeout: Duration = .seconds(5),
  timeSource: any TimeSource = SystemTimeSource(), _ test: (CachingResolver) async throws -> Void
) async throws {
  let loop = try EventLoop()
  let resolver = try CachingResolver(loop, .asking(servers, timeout: timeout), timeSource: timeSource)
  do {
    try await test(resolver)
  } catch {
    await resolver.shutdown()
    loop.stop()
    throw error
  }
  await resolver.shutdown()
  loop.stop()
}

/// The number of sockets of this process among the descriptors below 1024.
func openSockets() -> Int {
  (0..<1024).filter { descriptor in
    var status = stat()
    return fstat(Int32(descriptor), &status) == 0 && status.st_mode & S_IFMT == S_IFSOCK
  }.count
}
