import CCurl
package import NetOptCore

/// libcurl as a whole.
package enum CurlLibrary {
  /// Whether libcurl is set up. Asking sets it up, once, whoever asks first (curl_global_init(3)).
  static let isReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

  /// Whether this libcurl may hand a busy HTTP/1.1 connection to a second transfer: all before 8.5.0 do
  /// (`ConnectionExists` in lib/url.c). docs/adr/0022 has the way round.
  static let handsOutBusyConnections = isBefore(0x08_05_00)

  /// Whether this libcurl stops in the middle of a head over HTTP/2 that is longer than its buffer: all before 8.1.0 do
  /// (`on_frame_recv` in lib/http2.c).
  package static let stopsAtLongHeads = isBefore(0x08_01_00)

  /// Whether this libcurl appends a fold that comes before any field to a field of the transfer before, which it has freed: all before
  /// 8.1.0 do (`Curl_headers_push` in lib/headers.c).
  static let foldsIntoFreedFields = isBefore(0x08_01_00)

  /// Whether this libcurl drops what it has of an answer when it reads a reset behind it, also one that says NO_ERROR: all before 8.1.0 do
  /// (`cf_h2_recv` in lib/http2.c).
  static let dropsAnswersAtResets = isBefore(0x08_01_00)

  /// Whether this libcurl keeps TLS sessions encoded: all from 8.10.0 on do (`Curl_ossl_add_session` in lib/vtls/openssl.c).
  static let encodesSessions = !isBefore(0x08_0a_00)

  /// Whether this libcurl shows chunks as they came (CURLINFO_DATA_IN in CURLOPT_DEBUGFUNCTION(3)): 8.5.0 and 8.6.0 show what was in them
  /// (`cw_raw_write` in lib/sendf.c).
  static let showsChunks = isBefore(0x08_05_00) || !isBefore(0x08_07_00)

  /// Whether this libcurl may read on although a transfer is paused, and then drop what waits when the connection ends: those from 8.3.0 to 8.5.0
  /// (`Curl_readwrite` in lib/transfer.c).
  static let losesPausedBodies = !isBefore(0x08_03_00) && isBefore(0x08_06_00)

  /// Whether this libcurl may give a request an idle HTTP/2 connection without reading what has come on it: all from 8.22.0 on do, until a second
  /// after they last did (`Curl_cpool_conn_seems_healthy` in lib/conncache.c).
  static let readsIdleConnectionsSeldom = !isBefore(0x08_16_00)

  /// Whether this libcurl has nghttp2 fail when a frame breaks a rule: all from 8.13.0 on do (`cf_h2_on_invalid_frame_recv` in lib/http2.c).
  static let refusesInvalidFrames = !isBefore(0x08_0d_00)

  /// Its version, as "7.88.1".
  static let release = text(netopt_version_info()?.pointee.version) ?? ""

  /// - Parameter version: a number as libcurl counts its releases (curl_version_info(3)).
  private static func isBefore(_ version: UInt32) -> Bool {
    (netopt_version_info()?.pointee.version_num ?? 0) < version
  }

  /// The TLS library as libcurl names it, as "OpenSSL/3.0.15"; empty when libcurl has none.
  static let tlsName = text(netopt_version_info()?.pointee.ssl_version) ?? ""

  /// The warnings that libcurl uses a TLS library that netopt was not built for, and that it is a release with faults that netopt cannot make good.
  package static let warnings =
    (OpenSSL.loaded == nil ? [OpenSSL.warning(of: tlsName)] : [])
    + (losesPausedBodies || !showsChunks ? [faultyRelease] : [])

  private static var faultyRelease: NetOptError {
    NetOptError(
      .unsupported, phase: .receive,
      """
      libcurl \(release) has faults with HTTP/1.1 that netopt cannot make good: \(losesPausedBodies ? "a large response whose reader is behind may fail" : "")\
      \(losesPausedBodies && !showsChunks ? ", and " : "")\(showsChunks ? "" : "the size of a chunk is not always checked"). Use libcurl 8.7.0 or later, or one \
      before 8.3.0.
      """)
  }

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
}
