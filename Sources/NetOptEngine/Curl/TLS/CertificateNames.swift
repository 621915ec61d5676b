/// The names in the certificate that a server presented.
enum CertificateNames {
  /// Returns the DNS names and addresses of the subject alternative names, or else the common name. At most
  /// eight names: they go into a message, and the other side chose them.
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

  /// Removes the bytes that are not ASCII. Comparisons of other text may take long (`SlowText`).
  private static func ascii(_ text: String) -> String {
    String(decoding: text.utf8.filter { $0 < 0x80 }, as: UTF8.self)
  }

  /// Removes white space from a name, and cuts the name after 253 characters, the most of a DNS name.
  private static func shown(_ name: Substring) -> String {
    String(name.filter { !$0.isWhitespace && !$0.isNewline }.prefix(253))
  }
}
