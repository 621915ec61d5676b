extension VerificationReport {
  /// Why a request was accepted or refused. The names are stable: programs may act on them.
  public enum Reason: String, Hashable, Sendable, CaseIterable {
    /// The signature is right.
    case ok
    /// The request is not one: a truncated message, a bad URL, bytes that no field may have.
    case malformedRequest = "malformed-request"
    /// The request carries no signature of the scheme.
    case noSignature = "no-signature"
    /// The field or parameter with the signature breaks its own rules.
    case malformedSignature = "malformed-signature"
    /// The scheme is weak, and weak ones are not allowed.
    case weakScheme = "weak-scheme"
    /// No key has this id.
    case unknownKey = "unknown-key"
    /// The key's secret could not be had.
    case keyUnavailable = "key-unavailable"
    /// The key is not yet valid.
    case keyNotYetValid = "key-not-yet-valid"
    /// The key is not valid any more.
    case keyExpired = "key-expired"
    /// The key is not for this scheme, or of a kind that the scheme cannot use.
    case schemeNotAllowed = "scheme-not-allowed"
    /// The scheme is weak, and the key is not marked for legacy schemes.
    case keyNotLegacy = "key-not-legacy"
    /// The key is not for this host, method or path.
    case outOfScope = "out-of-scope"
    /// It was signed too long ago.
    case tooOld = "too-old"
    /// It was signed in the future.
    case fromTheFuture = "from-the-future"
    /// The signature says that it is over.
    case signatureExpired = "signature-expired"
    /// Something that has to be signed is not.
    case notCovered = "not-covered"
    /// Something that is signed is not there.
    case missingField = "missing-field"
    /// The digest that the request carries is not that of its body.
    case bodyMismatch = "body-mismatch"
    /// The signature is not that of this request under this key.
    case signatureMismatch = "signature-mismatch"
    /// The nonce has been used.
    case replayed
    /// The nonces could not be kept, so that nothing can be said about replays.
    case nonceStoreFailed = "nonce-store-failed"
  }
}
