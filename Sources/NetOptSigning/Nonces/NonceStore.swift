import NetOptCore

/// A store of used nonces. A verifier records the nonce of each valid signature, and refuses a signature
/// whose nonce is already recorded. Safe to use from any thread.
public protocol NonceStore: Sendable {
  /// Records a nonce, atomically: when several callers record the same nonce, in any process, only one of
  /// them gets `true`.
  ///
  /// A store may remove nonces that have expired. It then remembers the latest `created` of all removed
  /// nonces. It throws for every nonce that it does not have and whose `created` is not later than this,
  /// because it may have removed that nonce.
  ///
  /// Verifiers with different time windows can share a store. The store may then throw for a signature that
  /// the verifier with the longer window still accepts, because it has removed nonces that expired for the
  /// other verifier.
  ///
  /// - Parameters:
  ///   - nonce: the nonce of the signature.
  ///   - key: the id of the key that signed. Equal nonces of different keys are different entries.
  ///   - created: when the signature was made, in seconds since 1970.
  ///   - expiry: the last second in which the caller accepts the signature, in seconds since 1970. The store
  ///     must keep the nonce until then.
  ///   - now: the current time in seconds since 1970.
  /// - Returns: true if the nonce is new and was recorded; false if the store already has it.
  /// - Throws: when the store cannot record the nonce, or cannot tell whether it was used. The caller must
  ///   refuse the request.
  func record(
    _ nonce: String, of key: String, created: Int64, until expiry: Int64, now: Int64
  ) throws(NonceStoreError) -> Bool
}

/// The reason why a store could not record a nonce.
public struct NonceStoreError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The failure, and how to correct it, in words for users.
  public let description: String

  /// Makes an error.
  public init(_ description: String) { self.description = description }

  /// The store has the maximum number of nonces, and none of them has expired.
  static func full(with limit: Int) -> Self {
    Self("the store is full with \(limit) nonces; allow more, or shorten the time window")
  }

  /// The store has removed a nonce whose signature was made at the time `last` (seconds since 1970). The
  /// nonce to record belongs to a signature that is not newer, so it may be a removed nonce.
  static func forgotten(createdUntil last: Int64) -> Self {
    Self(
      """
      the store no longer has the nonces of signatures made until \(CivilTime(seconds: last).rfc3339), and this \
      signature is not newer: it may be a replay. Sign the request again. If that does not help, the verifier's clock was \
      ahead, or --now is a past moment: set the clock, or name another store
      """)
  }
}
