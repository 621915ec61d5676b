package import NetOptCore
import NetOptLocking

/// Finds the addresses of names with c-ares on an event loop, and keeps them for their time to live.
///
/// What is cached is answered on the caller's thread. Otherwise there is one look-up under way for a name, however
/// many wait for it; cancelling one of them leaves the others and the look-up alone. Safe from any thread.
///
/// No descriptor is opened and nothing is asked before the first look-up. It must be shut down before its loop stops.
package final class CachingResolver: Resolver {
  private typealias Outcome = DNSCache.Outcome
  /// Checked: the loop may resume it before its task is suspended. It carries nothing, and the task takes its answer from behind
  /// the lock, which orders the two (docs/adr/0006).
  private typealias Continuation = CheckedContinuation<Void, Never>

  /// Somebody who waits.
  private enum Waiting {
    /// Is about to be suspended.
    case announced
    case suspended(Continuation)
    /// Has an answer, and has not taken it yet.
    case answered(Outcome)
  }

  private struct State {
    var cache = DNSCache()
    var waiting: [DNSCache.Waiter: Waiting] = [:]
    var lastWaiter: DNSCache.Waiter = 0
    var isShutDown = false

    /// Somebody wants a name. When it is looked up, they are announced as one who waits.
    mutating func begin(
      _ name: String, fresh: Bool, at now: MonotonicInstant
    ) -> (DNSCache.Action, DNSCache.Waiter) {
      if isShutDown { return (.answer(.failure(AresStatus.shutDown)), 0) }
      lastWaiter += 1
      let action = fresh ? .startLookUp : cache.lookUp(name, for: lastWaiter, at: now)
      switch action {
      case .startLookUp, .wait: waiting[lastWaiter] = .announced
      case .answer, .answerAndRefresh: break
      }
      return (action, lastWaiter)
    }

    /// Somebody is about to be suspended.
    ///
    /// - Returns: false when there is an answer already.
    mutating func suspend(_ waiter: DNSCache.Waiter, _ continuation: Continuation) -> Bool {
      if case .answered = waiting[waiter] { return false }
      waiting[waiter] = .suspended(continuation)
      return true
    }

    /// There is an answer for somebody, unless they have one.
    ///
    /// - Returns: what the caller resumes, once the lock is free.
    mutating func answer(_ waiter: DNSCache.Waiter, with outcome: Outcome) -> Continuation? {
      switch waiting[waiter] {
      case .announced:
        waiting[waiter] = .answered(outcome)
        return nil
      case .suspended(let continuation):
        waiting[waiter] = .answered(outcome)
        return continuation
      case .answered, nil:
        return nil
      }
    }

    /// The answer of somebody who waits no more.
    mutating func takeAnswer(of waiter: DNSCache.Waiter) -> Outcome? {
      guard case .answered(let outcome) = waiting.removeValue(forKey: waiter) else { return nil }
      return outcome
    }
  }

  private let loop: EventLoop
  private let channel: AresChannel
  private let timeSource: any TimeSource
  private let state = Locked(State())

  /// Makes a resolver.
  ///
  /// - Parameters:
  ///   - loop: where c-ares runs.
  ///   - timeSource: what answers expire by.
  /// - Throws: `invalidConfiguration`, naming the setting and what it may be.
  package init(
    _ loop: EventLoop, _ configuration: ResolverConfiguration = ResolverConfiguration(),
    timeSource: any TimeSource = SystemTimeSource()
  ) throws(NetOptError) {
    try configuration.check()
    self.loop = loop
    self.timeSource = timeSource
    channel = AresChannel(loop, configuration, servers: try configuration.serverEndpoints())
  }

  /// Looks a name up. An IP address is its own answer.
  ///
  /// - Parameter fresh: whether the cache is passed over. A fresh look-up shares nothing with others: it neither joins
  ///   one that is under way nor does its answer go to the cache. Default: false.
  /// - Throws: `nameNotFound`, `resolverFailed`, `shutDown`; `cancelled` when the task was and would have to wait.
  package func resolve(_ name: String, fresh: Bool = false) async throws(NetOptError) -> ResolvedAddresses {
    let name = Origin.normalized(host: name)
    let now = timeSource.now()
    let (action, waiter) = state.withLock { state in state.begin(name, fresh: fresh, at: now) }
    switch action {
    case .answer(let outcome):
      return try outcome.get()
    case .answerAndRefresh(let answer):
      startLookUp(name)
      return answer
    case .startLookUp:
      if fresh { startFreshLookUp(name, for: waiter) } else { startLookUp(name) }
    case .wait:
      break
    }
    return try await answer(to: waiter, for: name).get()
  }

  /// Asks the name servers of the network that this machine is in now, also for what is under way. Answers from before are
  /// given only when none of them answers.
  package func networkChanged() {
    state.withLock { $0.cache.networkChanged() }
    _ = loop.submit(AresRenewal(channel))
  }

  /// Fails what is under way with `shutDown` and closes the channel. Returns when no descriptor of it is left.
  package func shutdown() async {
    let outcome = Outcome.failure(AresStatus.shutDown)
    let suspended = state.withLock { state in
      state.isShutDown = true
      return state.waiting.keys.compactMap { state.answer($0, with: outcome) }
    }
    for continuation in suspended { continuation.resume() }
    await withCheckedContinuation { continuation in
      let work = AresShutdown(channel) { continuation.resume() }
      if !loop.submit(work) { continuation.resume() }
    }
  }

  /// Suspends until the waiter is answered, or its task is cancelled.
  private func answer(to waiter: DNSCache.Waiter, for name: String) async -> Outcome {
    let cancelled = { @Sendable in
      Outcome.failure(NetOptError(.cancelled, phase: .resolve, "looking up \(name) was cancelled"))
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let mustWait = state.withLock { state in state.suspend(waiter, continuation) }
        if !mustWait { continuation.resume() }
      }
    } onCancel: {
      let continuation = state.withLock { state in
        state.cache.abandon(name, by: waiter)
        return state.answer(waiter, with: cancelled())
      }
      continuation?.resume()
    }
    // There is one: nothing else resumes the continuation.
    return state.withLock { $0.takeAnswer(of: waiter) } ?? cancelled()
  }

  private func startLookUp(_ name: String) {
    start(name) { [self] outcome in
      let now = timeSource.now()
      let continuations = state.withLock { state in
        let (waiters, outcome) = state.cache.ended(name, with: outcome, at: now)
        return waiters.compactMap { state.answer($0, with: outcome) }
      }
      for continuation in continuations { continuation.resume() }
    }
  }

  private func startFreshLookUp(_ name: String, for waiter: DNSCache.Waiter) {
    start(name) { [self] outcome in
      let outcome = outcome.map(DNSCache.bounded)
      state.withLock { state in state.answer(waiter, with: outcome) }?.resume()
    }
  }

  private func start(_ name: String, whenEnded: @escaping @Sendable (Outcome) -> Void) {
    // Here and not before the cache is asked, which is the quicker of the two.
    if let address = IPAddress(name) {
      let answer = ResolvedAddresses([address], timeToLive: DNSCache.lifetimes.upperBound)
      return whenEnded(.success(answer))
    }
    if let fault = HTTPURL.hostNameFault(name) {
      return whenEnded(.failure(AresStatus.noName(name, fault)))
    }
    let lookUp = AresLookUp(name, on: channel, whenEnded: whenEnded)
    if !loop.submit(lookUp) { whenEnded(.failure(AresStatus.shutDown)) }
  }
}
