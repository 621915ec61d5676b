import NetOptCore
import NetOptLocking
import NetOptTestSupport
import Testing

@testable import NetOpt

/// Fetches of tokens that calls share.
@Suite struct BearerTokenTests {
  private struct Failed: Error {}

  /// Counts fetches, and holds each one back until its latch is open.
  private final class Service: Sendable {
    let latches = (0..<8).map { _ in Latch() }
    let rejected = Locked<[String?]>([])
    var fetches: Int { rejected.withLock { $0.count } }

    func fetch(_ rejected: String?) async throws -> String {
      let number = self.rejected.withLock { all in
        all.append(rejected)
        return all.count - 1
      }
      try await latches[number].wait()
      return "t\(number)"
    }
  }

  private static func call(
    _ token: BearerToken, replacing rejected: String? = nil, within limit: Duration? = nil
  ) -> Task<Result<String, NetOptError>, Never> {
    Task {
      do throws(NetOptError) {
        let deadline = limit.map { SystemTimeSource().now() + $0 }
        return .success(try await token.token(replacing: rejected, until: deadline))
      } catch {
        return .failure(error)
      }
    }
  }

  @Test("while a rejected token is replaced, other calls wait for the new one")
  func replacement() async throws {
    let service = Service()
    let token = BearerToken(BoundedWaits(SystemTimeSource())) { try await service.fetch($0) }
    service.latches[0].open()
    #expect(try await Self.call(token).value.get() == "t0")
    let first = Self.call(token, replacing: "t0")
    let second = Self.call(token)
    try await wait(for: "both calls") { token.waiting == 2 }
    service.latches[1].open()
    #expect(try await first.value.get() == "t1")
    #expect(try await second.value.get() == "t1")
    // A call that learns late that t0 is rejected gets the new token.
    #expect(try await Self.call(token, replacing: "t0").value.get() == "t1")
    #expect(service.rejected.withLock { $0 } == [nil, "t0"])
  }

  @Test("a rejected token stays known until another one is fetched")
  func failedReplacement() async throws {
    let rejected = Fetches()
    let token = BearerToken(BoundedWaits(SystemTimeSource())) { old in
      let count = rejected.all.withLock { all in
        all.append(old)
        return all.count
      }
      if count == 2 { throw Failed() }
      return "t\(count)"
    }
    #expect(try await Self.call(token).value.get() == "t1")
    await #expect(throws: NetOptError.self) { try await Self.call(token, replacing: "t1").value.get() }
    #expect(try await Self.call(token).value.get() == "t3")
    #expect(rejected.all.withLock { $0 } == [nil, "t1", "t1"])
  }

  private final class Fetches: Sendable {
    let all = Locked<[String?]>([])
  }

  @Test(
    "a fetch that takes too long fails the call that began it, and the others wait for another fetch",
    .timeLimit(.minutes(1)))
  func tooLong() async throws {
    let service = Service()
    let token = BearerToken(BoundedWaits(SystemTimeSource()), longestFetch: .milliseconds(100)) {
      try await service.fetch($0)
    }
    let first = Self.call(token)
    try await wait(for: "the first fetch") { service.fetches == 1 }
    let second = Self.call(token)
    let error = await #expect(throws: NetOptError.self) { try await first.value.get() }
    #expect(error?.code == .timeout)
    try await wait(for: "the second fetch") { service.fetches == 2 }
    service.latches[1].open()
    #expect(try await second.value.get() == "t1")
  }

  @Test(
    "each of many calls ends with a token, at its deadline, or by its cancellation", .timeLimit(.minutes(1)),
    arguments: 1...20 as ClosedRange<UInt64>)
  func manyCalls(seed: UInt64) async throws {
    var random = SplitMix64(seed: seed)
    let service = Service()
    let waits = BoundedWaits(SystemTimeSource())
    let token = BearerToken(waits) { try await service.fetch($0) }
    var calls: [(Task<Result<String, NetOptError>, Never>, Set<NetOptError.Code>)] = []
    for _ in 0..<30 {
      let hasLimit = random.below(3) == 0
      let call = Self.call(token, within: hasLimit ? .milliseconds(Int64(random.below(20))) : nil)
      var endings: Set<NetOptError.Code> = hasLimit ? [.timeout] : []
      if random.below(4) == 0 {
        call.cancel()
        endings.insert(.cancelled)
      }
      if random.below(3) == 0 { await Task.yield() }
      calls.append((call, endings))
    }
    let stops = random.below(3) == 0
    if stops { waits.stop() } else { for latch in service.latches { latch.open() } }
    for (call, endings) in calls {
      switch await call.value {
      case .success(let token): #expect(!stops && token == "t0")
      case .failure(let error): #expect(endings.contains(error.code) || stops && error.code == .shutDown)
      }
    }
    try await wait(for: "all calls to leave") { token.waiting == 0 }
    #expect(service.fetches <= 1)
  }
}
