/// The signature schemes.
public enum SchemeName: String, Hashable, Sendable, CaseIterable {
  /// HMAC-SHA256 over a canonical request, with time and nonce. The default.
  case netopt1
  /// HTTP Message Signatures (RFC 9421).
  case rfc9421
  /// AWS Signature Version 4.
  case sigv4
  /// A hash of secret, API and parameters, hashed again with a salt. Weak.
  case saltedMD5 = "salted-md5"
  /// The caller's own key travels with its signature, encrypted under a platform key.
  case sealedKey = "sealed-key"
}
