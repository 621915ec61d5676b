import NetOptCore

/// Remembers which nonces were used. Safe to use from any thread.
public protocol NonceStore: Sendable {
  /// Records a nonce, atomically: of several callers with the same nonce, in whatever process, one is told that it is new.
  ///
  /// - Parameters:
  ///   - nonce: what must not come twice.
  ///   - key: the id of the key that signed it; nonces of different keys have nothing to do with each other.
  ///   - expiry: until when it has to be remembered, in seconds since 1970.
  ///   - now: the present moment in seconds since 1970.
  /// - Returns: whether it is new.
  /// - Throws: when it could not be recorded, which is when the store is full too: the request must then be refused.
  func record(_ nonce: String, of key: String, until expiry: Int64, now: Int64) throws(NonceStoreError)
    -> Bool
}

/// Why a nonce could not be recorded.
public struct NonceStoreError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What failed, and what to do.
  public let description: String

  /// Makes an error.
  public init(_ description: String) { self.description = description }

  static func full(with limit: Int) -> Self {
    Self("the store is full with \(limit) nonces; allow more, or shorten the time window")
  }

  /// The nonce has not expired, but the store has already forgotten nonces with this or a later expiry. The nonce may be one of them.
  static func forgotten(until expiry: Int64) -> Self {
    Self(
      "nonces that expire until \(CivilTime(seconds: expiry).rfc3339) are forgotten, and this one does: it may be a replay. The clock was ahead before, or the moment given is a past one; set the clock, wait until then, or name another store"
    )
  }
}
