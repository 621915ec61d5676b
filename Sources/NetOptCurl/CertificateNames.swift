import CCurl
import NetOptCore

/// The names in the certificate that a server presented (CURLINFO_CERTINFO(3)).
enum CertificateNames {
  /// The DNS names and addresses of the subject alternative names, or else the common name. At most eight: they go
  /// into a message, and the other side chose them.
  static func presented(by easy: EasyHandle) -> [String] {
    var info: UnsafeMutablePointer<curl_certinfo>?
    netopt_getinfo_certinfo(easy.raw, &info)
    guard let info = info?.pointee, info.num_of_certs > 0, let leaf = info.certinfo?[0] else { return [] }
    var commonName: [String] = []
    for node in sequence(first: leaf, next: { $0.pointee.next }) {
      guard let data = node.pointee.data else { continue }
      let text = String(cString: data)
      if let value = text.value(after: "X509v3 Subject Alternative Name:") {
        let names = value.split(separator: ",").compactMap { name -> String? in
          guard let colon = name.firstIndex(of: ":") else { return nil }
          return shown(name[name.index(after: colon)...])
        }
        if !names.isEmpty { return Array(names.prefix(8)) }
      } else if let value = text.value(after: "Subject:"), let start = value.firstRange(of: "CN = ") {
        commonName = [shown(value[start.upperBound...].prefix { $0 != "," })]
      }
    }
    return commonName
  }

  private static func shown(_ name: Substring) -> String {
    String(name.filter { $0.isASCII && !$0.isWhitespace && !$0.isNewline }.prefix(253))
  }
}

extension String {
  fileprivate func value(after key: String) -> Substring? { hasPrefix(key) ? dropFirst(key.count) : nil }
}
