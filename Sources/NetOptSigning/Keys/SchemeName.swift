/// The signature schemes.
public enum SchemeName: String, Hashable, Sendable, CaseIterable {
  /// HMAC-SHA256 over a canonical request, with time and nonce. The default.
  case netopt1
  /// HTTP Message Signatures (RFC 9421).
  case rfc9421
  /// AWS Signature Version 4.
  case sigv4
  /// A hash, by default MD5, of secret, API and parameters, hashed again with a salt. A weak scheme
  /// (`isWeak`).
  case saltedMD5 = "salted-md5"
  /// The request carries the caller's key, encrypted under a key of the platform, and a signature under the
  /// caller's key.
  case sealedKey = "sealed-key"
}
