import NetOptCore
import NetOptLocking

/// Nonces in memory: for tests, and for verifiers that are one process and may forget when it ends.
public final class MemoryNonceStore: NonceStore {
  private struct Entry: Hashable {
    let key: String
    let nonce: String
  }

  private struct State {
    var expiries: [Entry: Int64] = [:]
    /// When it is worth looking for what may be forgotten.
    var nextSweep = Int64.min
    /// The latest expiry of a nonce that was forgotten.
    var forgotten: Int64?

    /// Forgets what has expired. Done at most once in ten seconds of requests, or when there is no room.
    mutating func forget(before now: Int64) {
      for expiry in expiries.values where expiry < now { forgotten = max(forgotten ?? expiry, expiry) }
      expiries = expiries.filter { $0.value >= now }
      nextSweep = now.addingClamped(10)
    }
  }

  private let state = Locked(State())
  private let limit: Int

  /// Makes an empty store.
  ///
  /// - Parameter limit: the most nonces that are kept.
  public init(limit: Int = 1_000_000) { self.limit = limit }

  /// Records a nonce.
  public func record(
    _ nonce: String, of key: String, until expiry: Int64, now: Int64
  ) throws(NonceStoreError) -> Bool {
    let limit = limit
    return try state.withLock { state throws(NonceStoreError) in
      if now >= state.nextSweep || state.expiries.count >= limit { state.forget(before: now) }
      let entry = Entry(key: key, nonce: nonce)
      if let known = state.expiries[entry], known >= now { return false }
      if let forgotten = state.forgotten, expiry <= forgotten { throw .forgotten(until: forgotten) }
      guard state.expiries.count < limit else { throw .full(with: limit) }
      state.expiries[entry] = expiry
      return true
    }
  }

  /// How many nonces are kept.
  package var count: Int { state.withLock { $0.expiries.count } }
}
