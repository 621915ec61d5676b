import FoundationEssentials

/// A pin: the SHA-256 hash of the public key that a server's certificate must have. The hash is that of the
/// key's SubjectPublicKeyInfo in DER (RFC 7469, section 2.4).
package struct PublicKeyPin: Hashable, Sendable, CustomStringConvertible {
  /// The hash in base64.
  private let hash: String

  /// Reads a pin in the form `sha256/BASE64`, or in curl's form `sha256//BASE64`. `nil` for any other text.
  package init?(_ text: String) {
    guard text.hasPrefix("sha256/") else { return nil }
    let rest = text.dropFirst("sha256/".count)
    let hash = String(rest.hasPrefix("/") && rest.utf8.count == 45 ? rest.dropFirst() : rest)
    // 32 bytes have 44 characters in base64. Another text for the same bytes would be another pin.
    guard hash.utf8.count == 44, let bytes = Data(base64Encoded: hash), bytes.count == 32,
      bytes.base64EncodedString() == hash
    else { return nil }
    self.hash = hash
  }

  /// The pin in the form `sha256/BASE64`.
  package var description: String { "sha256/\(hash)" }

  /// The pins in the form of CURLOPT_PINNEDPUBLICKEY(3).
  package static func curlText(_ pins: [Self]) -> String {
    pins.map { "sha256//\($0.hash)" }.joined(separator: ";")
  }
}
