/// The supported algorithms of public-key signatures. The raw values are the names that RFC 9421, section
/// 6.2.2, registers.
package enum SignatureAlgorithm: String, CaseIterable, Sendable {
  /// Ed25519 (RFC 8032).
  case ed25519
  /// ECDSA on P-256 with SHA-256 (FIPS 186-5). A signature is r and s, 32 bytes each, without DER.
  case ecdsaP256 = "ecdsa-p256-sha256"
  /// RSASSA-PSS with SHA-512, MGF1 with SHA-512 and a salt of 64 bytes (RFC 8017, section 8.1).
  case rsaPSS = "rsa-pss-sha512"
  /// RSASSA-PKCS1-v1_5 with SHA-256 (RFC 8017, section 8.2).
  case rsaPKCS1 = "rsa-v1_5-sha256"

  /// Whether signing the same message twice with the same key gives the same signature.
  package var isDeterministic: Bool { self == .ed25519 || self == .rsaPKCS1 }
}
