import CCurl
import Glibc

/// A kind of line in the text about a certificate. The raw value is the beginning of the line in libcurl's
/// text (CURLINFO_CERTINFO(3)). `PeerCertificate.text(of:)` makes the rest of the line without libcurl.
enum CertificateLine: String {
  case subject = "Subject:"
  case expiry = "Expire date:"
  /// The subject alternative names: the names and addresses for which the certificate is valid.
  case alternativeNames = "X509v3 Subject Alternative Name:"

  /// Returns the rest of this line for the certificate of a transfer's server; `nil` if there is no such
  /// line. The transfer must have opened its connection.
  func value(of transfer: Transfer) -> String? {
    OpenSSL.loaded == nil ? value(of: transfer.easy) : transfer.certificate?.text(of: self)
  }

  /// Returns the rest of the line from libcurl's text; `nil` if there is no such line. libcurl has the text
  /// only if CURLOPT_CERTINFO(3) is set, which `EasyHandle` does if `OpenSSL.loaded` is `nil`.
  private func value(of easy: EasyHandle) -> String? {
    var info: UnsafeMutablePointer<curl_certinfo>?
    netopt_getinfo_certinfo(easy.raw, &info)
    guard let info = info?.pointee, info.num_of_certs > 0, let leaf = info.certinfo?[0] else { return nil }
    for node in sequence(first: leaf, next: { $0.pointee.next }) {
      // The nodes are compared in place, because they are long: one of them contains the whole certificate.
      guard let data = node.pointee.data, strncmp(data, rawValue, rawValue.utf8.count) == 0 else { continue }
      return String(cString: data + rawValue.utf8.count)
    }
    return nil
  }
}
