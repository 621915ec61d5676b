import NetOptCore
import Testing

@testable import NetOptEngine

@Suite struct DNSCacheTests {
  private let name = "api.example.com"
  private let start = MonotonicInstant(nanoseconds: 1_000_000_000_000)
  private let addresses = [IPAddress(v4: 0xc000_0201)]

  // MARK: Look-ups under way

  @Test("requests for the same name share one look-up, and all waiters get its answer")
  func sharesLookUp() {
    var cache = DNSCache()
    #expect(cache.lookUp(name, for: 1, at: start).kind == .startLookUp)
    #expect(cache.lookUp(name, for: 2, at: start).kind == .wait)
    #expect(cache.lookUp("other.example.com", for: 3, at: start).kind == .startLookUp)
    #expect(cache.lookUp(name, for: 4, at: start).kind == .wait)
    let ended = cache.ended(name, with: .success(answer(60)), at: start)
    #expect(ended.waiters == [1, 2, 4])
    #expect((try? ended.outcome.get()) == answer(60))
    #expect(cache.ended("other.example.com", with: .success(answer(60)), at: start).waiters == [3])
  }

  @Test("a waiter that abandons a look-up gets no answer, and the other waiters get theirs")
  func abandonedByOne() {
    var cache = DNSCache()
    for waiter in 1...3 as ClosedRange<UInt64> { _ = cache.lookUp(name, for: waiter, at: start) }
    cache.abandon(name, by: 2)
    cache.abandon("unknown.example.com", by: 1)
    #expect(cache.ended(name, with: .success(answer(60)), at: start).waiters == [1, 3])
  }

  @Test("the cache keeps the answer of a look-up that all waiters have abandoned")
  func abandonedByAll() {
    var cache = DNSCache()
    _ = cache.lookUp(name, for: 1, at: start)
    cache.abandon(name, by: 1)
    #expect(cache.lookUp(name, for: 2, at: start).kind == .wait)
    cache.abandon(name, by: 2)
    #expect(cache.ended(name, with: .success(answer(60)), at: start).waiters.isEmpty)
    #expect(cache.lookUp(name, for: 3, at: start).answer == answer(60))
  }

  // MARK: Another network

  @Test("after a change of the network, the cache starts a look-up for a cached name")
  func networkChange() {
    var cache = filled(timeToLive: 60)
    cache.networkChanged()
    #expect(cache.lookUp(name, for: 2, at: start + .seconds(1)).kind == .startLookUp)
    #expect(cache.lookUp(name, for: 3, at: start + .seconds(1)).kind == .wait)
    #expect(cache.ended(name, with: .success(answer(30)), at: start + .seconds(2)).waiters == [2, 3])
    #expect(cache.lookUp(name, for: 4, at: start + .seconds(3)).answer == answer(29))
  }

  @Test("the cache serves an answer of the former network when no server answers in the new one")
  func noServerInNewNetwork() {
    var cache = filled(timeToLive: 60)
    cache.networkChanged()
    _ = cache.lookUp(name, for: 2, at: start + .seconds(1))
    let failure = NetOptError(.resolverFailed, phase: .resolve, "nobody")
    let ended = cache.ended(name, with: .failure(failure), at: start + .seconds(2))
    #expect((try? ended.outcome.get())?.addresses == addresses)
    // For 1 s after the failure, the cache serves the answer without another look-up. A later request starts
    // a look-up.
    #expect(cache.lookUp(name, for: 3, at: start + .seconds(2)).kind == .answer)
    #expect(cache.lookUp(name, for: 4, at: start + .seconds(4)).kind == .answerAndRefresh)
  }

  @Test("a change of the network drops a cached nameNotFound")
  func unknownNameInNewNetwork() {
    var cache = DNSCache()
    _ = cache.lookUp(name, for: 1, at: start)
    let failure = NetOptError(.nameNotFound, phase: .resolve, "unknown")
    _ = cache.ended(name, with: .failure(failure), at: start)
    #expect(cache.lookUp(name, for: 2, at: start).kind == .answer)
    cache.networkChanged()
    #expect(cache.lookUp(name, for: 3, at: start).kind == .startLookUp)
  }

  // MARK: Lifetimes

  @Test("a cached answer has the rest of its time to live, and is stale afterwards")
  func timeToLive() {
    var cache = filled(timeToLive: 60)
    #expect(cache.lookUp(name, for: 2, at: start + .seconds(20)).answer == answer(40))
    #expect(cache.lookUp(name, for: 3, at: start + .milliseconds(59_999)).kind == .answer)
    #expect(cache.lookUp(name, for: 4, at: start + .seconds(60)).kind == .answerAndRefresh)
  }

  @Test(
    "the cache limits the lifetime of an answer to the range from 1 s to 3600 s",
    arguments: [(0, 1), (1, 1), (3600, 3600), (3601, 3600), (604_800, 3600)])
  func lifetimeBounds(given: Int, kept: Int) {
    var cache = DNSCache()
    _ = cache.lookUp(name, for: 1, at: start)
    let ended = cache.ended(name, with: .success(answer(given)), at: start)
    #expect((try? ended.outcome.get()) == answer(kept))
    #expect(cache.lookUp(name, for: 2, at: start + .seconds(kept) + .nanoseconds(-1)).kind == .answer)
    #expect(cache.lookUp(name, for: 3, at: start + .seconds(kept)).kind == .answerAndRefresh)
  }

  // MARK: Expired answers

  @Test("the cache serves a stale answer and starts one look-up to refresh it")
  func refreshesOnce() {
    var cache = filled(timeToLive: 60)
    let later = start + .seconds(61)
    let first = cache.lookUp(name, for: 2, at: later)
    #expect(first.kind == .answerAndRefresh)
    // A stale answer is given out with a time to live of 1 s.
    #expect(first.answer == answer(1))
    let second = cache.lookUp(name, for: 3, at: later)
    #expect(second.kind == .answer)
    #expect(second.answer == answer(1))
    #expect(cache.ended(name, with: .success(answer(30)), at: later).waiters.isEmpty)
    #expect(cache.lookUp(name, for: 4, at: later).answer == answer(30))
  }

  @Test("the cache serves a stale answer for a day while no server answers, then fails")
  func staleLifetime() {
    var cache = filled(timeToLive: 60)
    var now = start + .seconds(60)
    let end = start + .seconds(60) + DNSCache.staleLifetime
    while now < end {
      #expect(cache.lookUp(name, for: 2, at: now).kind == .answerAndRefresh)
      _ = cache.ended(name, with: .failure(error(.resolverFailed)), at: now)
      // After a look-up that failed, the cache starts no other look-up for 1 s.
      let held = cache.lookUp(name, for: 3, at: now + .milliseconds(999))
      #expect(held.kind == .answer)
      #expect(held.answer == answer(1))
      now = now + .seconds(3600)
    }
    #expect(cache.lookUp(name, for: 4, at: end).kind == .startLookUp)
    let ended = cache.ended(name, with: .failure(error(.resolverFailed)), at: end)
    #expect(ended.waiters == [4])
    #expect(ended.outcome.code == .resolverFailed)
  }

  @Test("a refresh that ends with nameNotFound replaces the stale answer")
  func refreshFindsNothing() {
    var cache = filled(timeToLive: 60)
    let later = start + .seconds(61)
    _ = cache.lookUp(name, for: 2, at: later)
    _ = cache.ended(name, with: .failure(error(.nameNotFound)), at: later)
    #expect(cache.lookUp(name, for: 3, at: later).failure == .nameNotFound)
  }

  // MARK: Failures

  @Test(
    "the cache keeps nameNotFound for 30 s and resolverFailed for 1 s",
    arguments: [
      (NetOptError.Code.nameNotFound, Duration.seconds(30)), (.resolverFailed, .seconds(1)),
    ])
  func failureLifetimes(code: NetOptError.Code, lifetime: Duration) {
    var cache = DNSCache()
    _ = cache.lookUp(name, for: 1, at: start)
    let ended = cache.ended(name, with: .failure(error(code)), at: start)
    #expect(ended.waiters == [1])
    #expect(ended.outcome.code == code)
    #expect(cache.lookUp(name, for: 2, at: start + lifetime + .nanoseconds(-1)).failure == code)
    #expect(cache.lookUp(name, for: 3, at: start + lifetime).kind == .startLookUp)
  }

  @Test func recoversFromAFailure() {
    var cache = DNSCache()
    _ = cache.lookUp(name, for: 1, at: start)
    _ = cache.ended(name, with: .failure(error(.resolverFailed)), at: start)
    _ = cache.lookUp(name, for: 2, at: start + .seconds(1))
    _ = cache.ended(name, with: .success(answer(60)), at: start + .seconds(1))
    #expect(cache.lookUp(name, for: 3, at: start + .seconds(1)).answer == answer(60))
  }

  // MARK: Size

  @Test("the cache drops old names beyond its limit, and keeps recent and frequent names")
  func sizeLimit() {
    var cache = DNSCache(limit: 100)
    for index in 0..<1000 {
      let name = "host-\(index).example.com"
      _ = cache.lookUp(name, for: 1, at: start)
      _ = cache.ended(name, with: .success(answer(60)), at: start)
      // This name is used after each new name, so the cache keeps it.
      _ = cache.lookUp("host-0.example.com", for: 2, at: start)
      #expect(cache.count <= 100)
    }
    #expect(cache.lookUp("host-0.example.com", for: 3, at: start).kind == .answer)
    #expect(cache.lookUp("host-960.example.com", for: 3, at: start).kind == .answer)
    #expect(cache.lookUp("host-1.example.com", for: 3, at: start).kind == .startLookUp)
  }

  // MARK: Support

  /// Returns the answer with a time to live in seconds.
  private func answer(_ seconds: Int) -> ResolvedAddresses {
    ResolvedAddresses(addresses, timeToLive: .seconds(seconds))
  }

  private func error(_ code: NetOptError.Code) -> NetOptError {
    NetOptError(code, phase: .resolve, "no")
  }

  /// Returns a cache with an answer that arrived at `start`.
  ///
  /// - Parameter timeToLive: in seconds.
  private func filled(timeToLive: Int) -> DNSCache {
    var cache = DNSCache()
    _ = cache.lookUp(name, for: 1, at: start)
    _ = cache.ended(name, with: .success(answer(timeToLive)), at: start)
    return cache
  }
}

extension DNSCache.Action {
  /// An action without its associated value.
  fileprivate enum Kind { case answer, answerAndRefresh, startLookUp, wait }

  fileprivate var kind: Kind {
    switch self {
    case .answer: .answer
    case .answerAndRefresh: .answerAndRefresh
    case .startLookUp: .startLookUp
    case .wait: .wait
    }
  }

  /// The addresses that the caller must return; `nil` if there are none.
  fileprivate var answer: ResolvedAddresses? {
    switch self {
    case .answer(let outcome): try? outcome.get()
    case .answerAndRefresh(let answer): answer
    case .startLookUp, .wait: nil
    }
  }

  /// The code of the error that the caller must throw; `nil` if there is none.
  fileprivate var failure: NetOptError.Code? {
    if case .answer(let outcome) = self { outcome.code } else { nil }
  }
}

extension DNSCache.Outcome {
  /// The code of the error; `nil` for a success.
  fileprivate var code: NetOptError.Code? {
    if case .failure(let error) = self { error.code } else { nil }
  }
}
