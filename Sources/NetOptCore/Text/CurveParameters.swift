/// Finds keys on elliptic curves that are given by parameters instead of a name. RFC 5480, section 2.1.1,
/// forbids the parameters. When libcrypto decodes such a key, it computes points of the curve, which can take
/// a tenth of a second.
package enum CurveParameters {
  /// The object identifiers prime-field and characteristic-two-field (RFC 3279, section 2.3.5). All
  /// parameters of curves contain one of them. No name of a curve and no other part of a certificate or key
  /// begins with them. The tag and the length are left out, because libcrypto accepts several encodings of
  /// them.
  private static let identifiers: [[UInt8]] = [1, 2].map { [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x01, $0] }

  /// Whether DER or TLS data contains the parameters of a curve.
  package static func occur(in bytes: some Collection<UInt8>) -> Bool {
    identifiers.contains { bytes.firstRange(ofBytes: $0) != nil }
  }
}
