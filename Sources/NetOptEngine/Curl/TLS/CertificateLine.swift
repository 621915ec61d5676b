import CCurl
import Glibc

/// A kind of line in OpenSSL's text about a certificate. The raw value is the beginning of the line as
/// libcurl reports it (CURLINFO_CERTINFO(3)).
enum CertificateLine: String {
  case subject = "Subject:"
  case expiry = "Expire date:"
  /// The subject alternative names: the names and addresses for which the certificate is valid.
  case alternativeNames = "X509v3 Subject Alternative Name:"

  /// Returns what the line says about the certificate of a transfer's server; `nil` without such a line. The
  /// transfer must have opened its connection.
  func value(of transfer: Transfer) -> String? {
    OpenSSL.loaded == nil ? value(of: transfer.easy) : transfer.certificate?.text(of: self)
  }

  /// Returns the value of the line that libcurl reports. libcurl reports it only if it was asked to keep
  /// certificates.
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
