/// The schemes that there are.
public enum SchemeName: String, Hashable, Sendable, CaseIterable {
  /// HMAC-SHA256 over a canonical request, with time and nonce. The default.
  case netopt1
  /// HTTP Message Signatures (RFC 9421).
  case rfc9421
  /// AWS Signature Version 4.
  case sigv4
  /// Secret, API and parameters hashed, salted, hashed again. Weak.
  case saltedMD5 = "salted-md5"
  /// The caller's own key, sealed under a platform key, beside the signature that it makes.
  case sealedKey = "sealed-key"
}
