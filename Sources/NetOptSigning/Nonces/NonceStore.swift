import NetOptCore

/// A store of used nonces. Safe to use from any thread.
public protocol NonceStore: Sendable {
  /// Records a nonce, atomically: when several callers record the same nonce, in any process, one of them gets `true`.
  ///
  /// A store may forget nonces that have expired. It then refuses every nonce that it does not know and that was
  /// created no later than one it forgot, for that nonce may be a replay. Verifiers with different time windows can
  /// therefore share a store: for signatures older than the shortest window the store throws.
  ///
  /// - Parameters:
  ///   - nonce: the nonce of the signature.
  ///   - key: the id of the key that signed. The same nonce under another key is another nonce.
  ///   - created: when the signature was made, in seconds since 1970.
  ///   - expiry: the last second in which the caller accepts the signature, in seconds since 1970.
  ///   - now: the present moment in seconds since 1970.
  /// - Returns: whether the nonce is new.
  /// - Throws: when the store cannot record the nonce, or cannot tell whether it is new. The caller must refuse the
  ///   request.
  func record(
    _ nonce: String, of key: String, created: Int64, until expiry: Int64, now: Int64
  ) throws(NonceStoreError) -> Bool
}

/// Why a nonce could not be recorded.
public struct NonceStoreError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What failed, and how to correct it.
  public let description: String

  /// Makes an error.
  public init(_ description: String) { self.description = description }

  static func full(with limit: Int) -> Self {
    Self("the store is full with \(limit) nonces; allow more, or shorten the time window")
  }

  /// The store has forgotten a nonce of this or a later moment. The nonce at hand may be one of them.
  static func forgotten(createdUntil last: Int64) -> Self {
    Self(
      """
      the store no longer has the nonces of signatures made until \(CivilTime(seconds: last).rfc3339), and this \
      signature is not newer: it may be a replay. Sign the request again. If that does not help, the verifier's clock was \
      ahead, or --now is a past moment: set the clock, or name another store
      """)
  }
}
