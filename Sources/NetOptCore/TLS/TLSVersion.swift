/// A version of TLS that netopt speaks. TLS 1.0 and 1.1 are not among them: RFC 8996 forbids them.
public enum TLSVersion: String, Hashable, CaseIterable, Comparable, Sendable {
  /// TLS 1.2 (RFC 5246).
  case tls12 = "1.2"
  /// TLS 1.3 (RFC 8446).
  case tls13 = "1.3"

  /// Whether a version is older than another one.
  public static func < (one: Self, other: Self) -> Bool { one == .tls12 && other == .tls13 }
}
