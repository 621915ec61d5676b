extension VerificationReport {
  /// Why a request was accepted or refused. The raw values are stable: programs may act on them.
  public enum Reason: String, Hashable, Sendable, CaseIterable {
    /// The request was accepted: it passed all checks.
    case ok
    /// The request is malformed: for example a truncated message, a bad URL, or bytes that no field may have.
    case malformedRequest = "malformed-request"
    /// The request carries no signature of the scheme.
    case noSignature = "no-signature"
    /// The field or parameter with the signature is malformed.
    case malformedSignature = "malformed-signature"
    /// The scheme is weak, and the signer or verifier does not allow weak schemes.
    case weakScheme = "weak-scheme"
    /// The key ring has no key with the id, or the signature does not use the expected key.
    case unknownKey = "unknown-key"
    /// The secret of the key is not available, or libcrypto failed.
    case keyUnavailable = "key-unavailable"
    /// The key is not valid yet (`SigningKey.notBefore`).
    case keyNotYetValid = "key-not-yet-valid"
    /// The key is no longer valid (`SigningKey.notAfter`).
    case keyExpired = "key-expired"
    /// The scheme may not use the key, the scheme cannot use a key of this kind, or the algorithm of the
    /// signature does not fit the key or the required algorithm.
    case schemeNotAllowed = "scheme-not-allowed"
    /// The scheme is weak, and the key is not marked for weak schemes (`SigningKey.isLegacy`).
    case keyNotLegacy = "key-not-legacy"
    /// The key may not sign requests with this host, method or path (`SigningKey.scopes`).
    case outOfScope = "out-of-scope"
    /// The request was signed longer ago than `SignatureVerifier.Policy.window` permits.
    case tooOld = "too-old"
    /// The time of signing is further in the future than `SignatureVerifier.Policy.window` permits.
    case fromTheFuture = "from-the-future"
    /// The expiry that the signature states has passed.
    case signatureExpired = "signature-expired"
    /// The signature does not cover something that it must cover: a field, a component, the host or the tag,
    /// for example.
    case notCovered = "not-covered"
    /// A field, a member of a field, or a query parameter that is signed or must be signed is not in the
    /// request.
    case missingField = "missing-field"
    /// The digest of the body in the request does not match the body, or netopt does not know its algorithm.
    case bodyMismatch = "body-mismatch"
    /// The signature is not valid for this request under this key.
    case signatureMismatch = "signature-mismatch"
    /// The nonce was used before.
    case replayed
    /// The verifier could not record the nonce, so it cannot rule out that the request is a replay.
    case nonceStoreFailed = "nonce-store-failed"
  }
}
