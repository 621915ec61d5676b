import NetOptCore
import NetOptLocking
import Testing

@testable import NetOpt

/// The background tasks of a cache.
@Suite struct BackgroundRefreshTests {
  @Test(
    "no refresh begins after stopRefreshes, not even one that was counted before", .timeLimit(.minutes(1)))
  func refreshAfterStop() async throws {
    let cache = try ResponseCache(
      ClientConfiguration.Cache(), SystemTimeSource(), proxies: ProxyChoice(.none)
    ) {
      _ in
    }
    let ran = Locked<[String]>([])
    #expect(cache.beginRefresh(of: Origin(.https, host: "a.test")))
    cache.stopRefreshes()
    cache.inBackground(isRefresh: true) { ran.withLock { $0.append("refresh") } }
    cache.inBackground { ran.withLock { $0.append("other") } }
    await cache.finish()
    #expect(ran.withLock { $0 } == ["other"])
  }
}
