/// The names in the certificate that a server presented.
enum CertificateNames {
  /// Returns the DNS names and addresses in the certificate's subject alternative names; if it has none, its
  /// common name. Returns at most eight names, because they go into a message and the peer chose them.
  static func presented(to transfer: Transfer) -> [String] {
    names(
      alternatives: CertificateLine.alternativeNames.value(of: transfer),
      subject: CertificateLine.subject.value(of: transfer))
  }

  /// Returns the names in two lines of OpenSSL's text, such as `DNS:example.com, IP Address:192.0.2.1`
  /// (alternatives) and `O = Example, CN = example.com` (subject).
  static func names(alternatives: String?, subject: String?) -> [String] {
    let names = ascii(alternatives ?? "").split(separator: ",").lazy.compactMap { name -> String? in
      guard let colon = name.firstIndex(of: ":") else { return nil }
      return shown(name[name.index(after: colon)...])
    }
    guard names.isEmpty else { return Array(names.prefix(8)) }
    guard let subject = subject.map(ascii), let start = subject.firstRange(of: "CN = ") else { return [] }
    return [shown(subject[start.upperBound...].prefix { $0 != "," })]
  }

  /// Returns a text without the bytes that are not ASCII. Comparing texts with other bytes may take long
  /// (`SlowText`).
  private static func ascii(_ text: String) -> String {
    String(decoding: text.utf8.filter { $0 < 0x80 }, as: UTF8.self)
  }

  /// Returns a name without white space, cut after 253 characters, the maximum length of a DNS name.
  private static func shown(_ name: Substring) -> String {
    String(name.filter { !$0.isWhitespace && !$0.isNewline }.prefix(253))
  }
}
