import CCurl

/// libcurl as a whole.
package enum CurlLibrary {
  /// Whether libcurl is set up. Asking sets it up, once, whoever asks first (curl_global_init(3)).
  static let isReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

  /// Names and versions of libcurl and the libraries under it that matter here, as they are at run time.
  package static let versions: [(name: String, version: String)] = {
    guard isReady, let info = netopt_version_info()?.pointee else { return [] }
    var versions = [("libcurl", text(info.version))]
    versions.append(("TLS", text(info.ssl_version)))
    if info.features & CURL_VERSION_HTTP2 != 0 { versions.append(("nghttp2", text(info.nghttp2_version))) }
    return versions.compactMap { pair in pair.1.map { (pair.0, $0) } }
  }()

  private static func text(_ pointer: UnsafePointer<CChar>?) -> String? {
    pointer.map { String(cString: $0) }
  }

  /// The content codings that this libcurl can decode, as they stand in `Accept-Encoding`.
  static let encodings: String = {
    let features = netopt_version_info()?.pointee.features ?? 0
    let codings = [
      ("gzip, deflate", CURL_VERSION_LIBZ), ("br", CURL_VERSION_BROTLI), ("zstd", CURL_VERSION_ZSTD),
    ]
    let known = codings.filter { features & Int32($0.1) != 0 }.map(\.0)
    return known.isEmpty ? "identity" : known.joined(separator: ", ")
  }()
}
