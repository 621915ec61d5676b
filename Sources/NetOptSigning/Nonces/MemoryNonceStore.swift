import NetOptCore
import NetOptLocking

/// A nonce store in memory, for tests and for verifiers that run in one process and need no nonces after it
/// ends.
public final class MemoryNonceStore: NonceStore {
  private struct Entry: Hashable {
    let key: String
    let nonce: String
  }

  private struct Times {
    let created: Int64
    let expiry: Int64
  }

  private struct State {
    var nonces: [Entry: Times] = [:]
    /// The earliest moment of the next search for expired nonces.
    var nextSweep = Int64.min
    /// The latest moment at which a forgotten nonce was created.
    var forgotten: Int64?

    /// Forgets the expired nonces: at most once in 10 s, or when the store is full.
    mutating func forget(before now: Int64) {
      for times in nonces.values where times.expiry < now {
        forgotten = max(forgotten ?? times.created, times.created)
      }
      nonces = nonces.filter { $0.value.expiry >= now }
      nextSweep = now.addingClamped(10)
    }
  }

  private let state = Locked(State())
  private let limit: Int

  /// Makes an empty store.
  ///
  /// - Parameter limit: the most nonces that the store keeps.
  public init(limit: Int = 1_000_000) { self.limit = limit }

  /// Records a nonce.
  public func record(
    _ nonce: String, of key: String, created: Int64, until expiry: Int64, now: Int64
  ) throws(NonceStoreError) -> Bool {
    let limit = limit
    return try state.withLock { state throws(NonceStoreError) in
      if now >= state.nextSweep || state.nonces.count >= limit { state.forget(before: now) }
      let entry = Entry(key: key, nonce: nonce)
      guard state.nonces[entry] == nil else { return false }
      if let forgotten = state.forgotten, created <= forgotten { throw .forgotten(createdUntil: forgotten) }
      guard state.nonces.count < limit else { throw .full(with: limit) }
      state.nonces[entry] = Times(created: created, expiry: expiry)
      return true
    }
  }

  /// How many nonces are kept.
  package var count: Int { state.withLock { $0.nonces.count } }
}
