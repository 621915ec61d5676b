import CCurl
import Glibc

/// A line about a certificate, by the words with which libcurl begins it (CURLINFO_CERTINFO(3)).
enum CertificateLine: String {
  case subject = "Subject:"
  case expiry = "Expire date:"
  case alternativeNames = "X509v3 Subject Alternative Name:"

  /// What it says of the certificate that the server of a transfer has presented, on a connection that the transfer opened.
  func value(of transfer: Transfer) -> String? {
    OpenSSL.loaded == nil ? value(of: transfer.easy) : transfer.certificate?.text(of: self)
  }

  /// What libcurl says, which it does where it was asked to keep certificates.
  private func value(of easy: EasyHandle) -> String? {
    var info: UnsafeMutablePointer<curl_certinfo>?
    netopt_getinfo_certinfo(easy.raw, &info)
    guard let info = info?.pointee, info.num_of_certs > 0, let leaf = info.certinfo?[0] else { return nil }
    for node in sequence(first: leaf, next: { $0.pointee.next }) {
      // The nodes are long: the whole certificate is one of them.
      guard let data = node.pointee.data, strncmp(data, rawValue, rawValue.utf8.count) == 0 else { continue }
      return String(cString: data + rawValue.utf8.count)
    }
    return nil
  }
}
