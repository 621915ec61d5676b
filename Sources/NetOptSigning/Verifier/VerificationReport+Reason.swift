extension VerificationReport {
  /// Why a request was accepted or refused. The raw values are stable: programs may act on them.
  public enum Reason: String, Hashable, Sendable, CaseIterable {
    /// The signature is right.
    case ok
    /// The request is malformed: a truncated message, a bad URL, or bytes that no field may have.
    case malformedRequest = "malformed-request"
    /// The request carries no signature of the scheme.
    case noSignature = "no-signature"
    /// The field or parameter with the signature is malformed.
    case malformedSignature = "malformed-signature"
    /// The scheme is weak, and the verifier does not allow weak schemes.
    case weakScheme = "weak-scheme"
    /// No key has the id, or the signature does not use the expected key.
    case unknownKey = "unknown-key"
    /// The secret of the key is not available, or libcrypto failed.
    case keyUnavailable = "key-unavailable"
    /// The key is not yet valid.
    case keyNotYetValid = "key-not-yet-valid"
    /// The key is no longer valid.
    case keyExpired = "key-expired"
    /// The key is not for this scheme, or the scheme cannot use its kind.
    case schemeNotAllowed = "scheme-not-allowed"
    /// The scheme is weak, and the key is not marked for legacy schemes.
    case keyNotLegacy = "key-not-legacy"
    /// The key is not for this host, method or path.
    case outOfScope = "out-of-scope"
    /// The request was signed too long ago.
    case tooOld = "too-old"
    /// The time of signing is too far in the future.
    case fromTheFuture = "from-the-future"
    /// The expiry that the signature states has passed.
    case signatureExpired = "signature-expired"
    /// Something that must be signed is not signed.
    case notCovered = "not-covered"
    /// Something that is or must be signed is missing from the request.
    case missingField = "missing-field"
    /// The digest in the request does not match its body.
    case bodyMismatch = "body-mismatch"
    /// The signature does not match this request and this key.
    case signatureMismatch = "signature-mismatch"
    /// The nonce was used before.
    case replayed
    /// The verifier could not record the nonce, so it cannot rule out a replay.
    case nonceStoreFailed = "nonce-store-failed"
  }
}
