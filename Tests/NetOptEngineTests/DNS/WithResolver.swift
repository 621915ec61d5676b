import Glibc
import NetOptCore
import NetOptEngine

extension ResolverConfiguration {
  /// Asks some servers, with patience for a busy machine unless less is asked for.
  static func asking(_ servers: [IPEndpoint], timeout: Duration = .seconds(5)) -> ResolverConfiguration {
    var configuration = ResolverConfiguration()
    configuration.servers = servers.map(\.description)
    configuration.timeout = timeout
    return configuration
  }
}

/// Runs a test with a resolver that has a loop of its own, and ends both.
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

/// How many sockets this process has.
func openSockets() -> Int {
  (0..<1024).filter { descriptor in
    var status = stat()
    return fstat(Int32(descriptor), &status) == 0 && status.st_mode & S_IFMT == S_IFSOCK
  }.count
}
