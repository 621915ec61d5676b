package import NetOptCore
import NetOptLocking

/// Resolves names with c-ares on an event loop, and caches the addresses for their time to live.
///
/// Answers cached names on the caller's thread. For other names it runs one look-up per name (single flight),
/// however many callers wait. Cancelling one caller affects neither the other callers nor the look-up. Safe
/// from any thread.
///
/// The resolver opens no descriptor and sends nothing before the first look-up. It must be shut down before
/// its loop stops.
package final class CachingResolver: Resolver {
  private typealias Outcome = DNSCache.Outcome
  /// Resumes the task of a waiter. It is a checked continuation: the thread sanitizer reports a false data
  /// race when an unsafe one is resumed before its task is suspended (docs/adr/0006). It carries no value:
  /// the task takes its answer from `state`, whose lock orders the write of the answer before the read.
  private typealias Continuation = CheckedContinuation<Void, Never>

  /// The state of a waiter: a caller whose answer comes from a look-up.
  private enum Waiting {
    /// The waiter is registered, and its task is about to be suspended.
    case announced
    /// The waiter's task is suspended. The continuation resumes it.
    case suspended(Continuation)
    /// The waiter has an answer that its task has not taken yet.
    case answered(Outcome)
  }

  private struct State {
    var cache = DNSCache()
    /// The waiters whose tasks have not yet taken an answer.
    var waiting: [DNSCache.Waiter: Waiting] = [:]
    /// The number of the last waiter. Each call gets the next number.
    var lastWaiter: DNSCache.Waiter = 0
    /// Whether `shutdown` was called. Later calls then fail.
    var isShutDown = false

    /// Decides how to answer a request for a name. When the caller must wait for a look-up, registers it as a
    /// waiter in the state `announced`.
    ///
    /// - Parameter fresh: whether to bypass the cache.
    /// - Returns: what the caller must do, and its number as a waiter.
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

    /// Stores the continuation of a waiter that is about to be suspended.
    ///
    /// - Returns: false when there is an answer already.
    mutating func suspend(_ waiter: DNSCache.Waiter, _ continuation: Continuation) -> Bool {
      if case .answered = waiting[waiter] { return false }
      waiting[waiter] = .suspended(continuation)
      return true
    }

    /// Stores the answer of a waiter, unless the waiter has an answer already.
    ///
    /// - Returns: the continuation that the caller must resume after it releases the lock; `nil` when the
    ///   waiter's task is not suspended.
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

    /// Removes a waiter and returns its answer.
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
  ///   - loop: the event loop on which c-ares runs.
  ///   - timeSource: the clock by which cache entries expire.
  /// - Throws: `invalidConfiguration` with the name of the setting and its permitted values.
  package init(
    _ loop: EventLoop, _ configuration: ResolverConfiguration = ResolverConfiguration(),
    timeSource: any TimeSource = SystemTimeSource()
  ) throws(NetOptError) {
    try configuration.check()
    self.loop = loop
    self.timeSource = timeSource
    channel = AresChannel(loop, configuration, servers: try configuration.serverEndpoints())
  }

  /// Resolves a name. An IP address resolves to itself.
  ///
  /// - Parameter fresh: whether to bypass the cache. A fresh look-up neither joins a look-up that is under
  ///   way nor stores its answer in the cache. Default: false.
  /// - Throws: `nameNotFound`, `resolverFailed`, `shutDown`; `cancelled` when the task is cancelled while it
  ///   waits for a look-up.
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

  /// Restarts the look-ups under way with the name servers of the current network. Uses cached answers from
  /// earlier networks only when no name server answers.
  package func networkChanged() {
    state.withLock { $0.cache.networkChanged() }
    _ = loop.submit(AresRenewal(channel))
  }

  /// Fails the look-ups under way with `shutDown` and closes the channel. Returns after the channel's last
  /// descriptor is closed.
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

  /// Suspends the waiter's task until the waiter has an answer or the task is cancelled.
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
    // The answer exists: only code that stores an answer resumes the continuation.
    return state.withLock { $0.takeAnswer(of: waiter) } ?? cancelled()
  }

  /// Starts a look-up whose outcome goes to the cache and to all waiters for the name.
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

  /// Starts a look-up whose outcome goes only to one waiter.
  private func startFreshLookUp(_ name: String, for waiter: DNSCache.Waiter) {
    start(name) { [self] outcome in
      let outcome = outcome.map(DNSCache.bounded)
      state.withLock { state in state.answer(waiter, with: outcome) }?.resume()
    }
  }

  /// Starts a look-up. Addresses and invalid names end at once, without c-ares.
  ///
  /// - Parameter whenEnded: called once with the outcome, on any thread.
  private func start(_ name: String, whenEnded: @escaping @Sendable (Outcome) -> Void) {
    // These checks come after the search in the cache, because the search is faster.
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
