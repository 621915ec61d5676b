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

    /// Forgets what has expired. Done at most once in ten seconds of requests, or when there is no room.
    mutating func forget(before now: Int64) {
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
    let isNew = state.withLock { state -> Bool? in
      if now >= state.nextSweep || state.expiries.count >= limit { state.forget(before: now) }
      let entry = Entry(key: key, nonce: nonce)
      if let known = state.expiries[entry], known >= now { return false }
      guard state.expiries.count < limit else { return nil }
      state.expiries[entry] = expiry
      return true
    }
    guard let isNew else {
      throw NonceStoreError("the store is full with \(limit) nonces; allow more, or shorten the time window")
    }
    return isNew
  }

  /// How many nonces are kept.
  package var count: Int { state.withLock { $0.expiries.count } }
}
