import CCurl
import Glibc

/// The OpenSSL that libcurl uses, when it uses OpenSSL: found at run time, so that netopt also runs on a libcurl with
/// another TLS library.
struct OpenSSL: Sendable {
  private typealias GetVersion = @convention(c) (OpaquePointer) -> UnsafePointer<CChar>?
  private let getVersion: GetVersion

  static let loaded: OpenSSL? = {
    guard let info = netopt_version_info()?.pointee, let name = info.ssl_version,
      String(cString: name).hasPrefix("OpenSSL/"),
      let symbol = dlsym(UnsafeMutableRawPointer(bitPattern: 0), "SSL_get_version")
    else { return nil }
    // The signature is that of SSL_get_version(3).
    return OpenSSL(getVersion: unsafeBitCast(symbol, to: GetVersion.self))
  }()

  /// The protocol's version on a transfer's connection, as "TLSv1.3".
  func version(of easy: EasyHandle) -> String? {
    var pointer: UnsafeMutableRawPointer?
    netopt_getinfo_pointer(easy.raw, CURLINFO_TLS_SSL_PTR, &pointer)
    let session = pointer?.assumingMemoryBound(to: curl_tlssessioninfo.self).pointee
    guard session?.backend == CURLSSLBACKEND_OPENSSL, let ssl = session?.internals else { return nil }
    return getVersion(OpaquePointer(ssl)).map { String(cString: $0) }
  }
}
