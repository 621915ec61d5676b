import NetOptCore
import NetOptLocking

/// A nonce store in memory. Its nonces are lost when the process ends, and other processes do not see them.
/// Use it in tests, and in a verifier that is a single process and may forget all nonces when it ends.
public final class MemoryNonceStore: NonceStore {
  /// A used nonce, and the id of the key that signed with it.
  private struct Entry: Hashable {
    let key: String
    let nonce: String
  }

  /// The times of a used nonce.
  private struct Times {
    /// When the signature was made, in seconds since 1970.
    let created: Int64
    /// The last second since 1970 in which a verifier accepts the signature.
    let expiry: Int64
  }

  /// What the lock protects.
  private struct State {
    /// The used nonces that the store keeps.
    var nonces: [Entry: Times] = [:]
    /// The earliest time at which `record` next removes the expired nonces, in seconds since 1970. A full
    /// store removes them earlier.
    var nextSweep = Int64.min
    /// The latest `created` of all nonces that were removed, in seconds since 1970; `nil` if none was
    /// removed. A signature that is not newer may have used a removed nonce.
    var forgotten: Int64?

    /// Removes the nonces whose `expiry` is before `now`, and sets the time of the next removal to 10 s
    /// later.
    mutating func forget(before now: Int64) {
      for times in nonces.values where times.expiry < now {
        forgotten = max(forgotten ?? times.created, times.created)
      }
      nonces = nonces.filter { $0.value.expiry >= now }
      nextSweep = now.addingClamped(10)
    }
  }

  private let state = Locked(State())
  /// The maximum number of nonces in the store.
  private let limit: Int

  /// Makes an empty store.
  ///
  /// - Parameter limit: the maximum number of nonces in the store.
  public init(limit: Int = 1_000_000) { self.limit = limit }

  /// Records a nonce, as `NonceStore` describes. Throws when the store is full of nonces that have not
  /// expired.
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

  /// The number of nonces in the store.
  package var count: Int { state.withLock { $0.nonces.count } }
}
