import CCurl
package import NetOptCore

/// The libcurl that the process uses.
package enum CurlLibrary {
  /// Whether libcurl was set up successfully. The first access sets libcurl up (curl_global_init(3)).
  static let isReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

  /// Whether this libcurl stops in the middle of an HTTP/2 head that is longer than its receive buffer
  /// (CURLOPT_BUFFERSIZE(3)). All releases before 8.1.0 do (`on_frame_recv` in lib/http2.c).
  package static let stopsAtLongHeads = isBefore(0x08_01_00)

  /// Whether this libcurl uses freed memory when a head begins with a continuation line (obs-fold): it
  /// appends the line to the last field of the previous transfer. All releases before 8.1.0 do
  /// (`Curl_headers_push` in lib/headers.c).
  static let foldsIntoFreedFields = isBefore(0x08_01_00)

  /// Whether this libcurl drops received data of a response that it has not delivered when the server resets
  /// the stream after this data, even with NO_ERROR. All releases before 8.1.0 do (`cf_h2_recv` in
  /// lib/http2.c).
  static let dropsAnswersAtResets = isBefore(0x08_01_00)

  /// Whether this libcurl may forget received bytes of an idle HTTP/2 connection, and read the connection on
  /// in the middle of a frame. All releases before 8.1.0 may (`http2_connisdead` in lib/http2.c).
  static let forgetsInput = isBefore(0x08_01_00)

  /// Whether this libcurl gathers small HTTP/2 frames. When the socket has no room for them, it fails, or sends
  /// a part of a request's body twice. The releases from 7.88.0 to 8.0.1 do (`send_callback` and `cf_h2_send` in
  /// lib/http2.c; see SocketRoom.c and `SentBody`).
  static let gathersFrames = !isBefore(0x07_58_00) && isBefore(0x08_01_00)

  /// Whether this libcurl stores TLS sessions as bytes (i2d_SSL_SESSION(3)). All releases from 8.10.0 on do
  /// (`Curl_ossl_add_session` in lib/vtls/openssl.c).
  static let encodesSessions = !isBefore(0x08_0a_00)

  /// Whether this libcurl passes chunks as received to the debug callback (CURLINFO_DATA_IN in
  /// CURLOPT_DEBUGFUNCTION(3)). 8.5.0 and 8.6.0 pass only the data of the chunks (`cw_raw_write` in
  /// lib/sendf.c).
  static let showsChunks = isBefore(0x08_05_00) || !isBefore(0x08_07_00)

  /// Whether this libcurl may keep reading while a transfer is paused, and drop the waiting data when the
  /// connection ends. The releases from 8.3.0 to 8.5.0 do (`Curl_readwrite` in lib/transfer.c).
  static let losesPausedBodies = !isBefore(0x08_03_00) && isBefore(0x08_06_00)

  /// Whether this libcurl may give an idle HTTP/2 connection to a request without reading what has arrived on
  /// the connection. All releases from 8.22.0 on do so for one second after they last read the connection
  /// (`Curl_cpool_conn_seems_healthy` in lib/conncache.c).
  static let readsIdleConnectionsSeldom = !isBefore(0x08_16_00)

  /// Whether this libcurl makes nghttp2 fail when a frame breaks a rule. All releases from 8.13.0 on do
  /// (`cf_h2_on_invalid_frame_recv` in lib/http2.c).
  static let refusesInvalidFrames = !isBefore(0x08_0d_00)

  /// The file of authorities that libcurl was built with (CURLINFO_CAINFO(3)); `nil` if it was built without
  /// one.
  static let authorityFile: String? = {
    guard isReady, let easy = curl_easy_init() else { return nil }
    defer { curl_easy_cleanup(easy) }
    var path: UnsafeMutablePointer<CChar>?
    netopt_getinfo_string(easy, CURLINFO_CAINFO, &path)
    return path.map { String(cString: $0) }
  }()

  /// libcurl's version, such as "7.88.1".
  static let release = text(netopt_version_info()?.pointee.version) ?? ""

  /// Whether this libcurl is older than a release.
  ///
  /// - Parameter version: the release in libcurl's numeric form (curl_version_info(3)): 0x080500 for 8.5.0.
  private static func isBefore(_ version: UInt32) -> Bool {
    (netopt_version_info()?.pointee.version_num ?? 0) < version
  }

  /// The TLS library in libcurl's notation, such as "OpenSSL/3.0.15"; empty if libcurl has none.
  static let tlsName = text(netopt_version_info()?.pointee.ssl_version) ?? ""

  /// The warnings about this libcurl: it uses a TLS library that netopt was not built for, or its release has
  /// faults that netopt cannot work around.
  package static let warnings =
    (OpenSSL.loaded == nil ? [OpenSSL.warning(of: tlsName)] : [])
    + (losesPausedBodies || !showsChunks ? [faultyRelease] : [])

  /// The warning about a release with faults that netopt cannot work around.
  private static var faultyRelease: NetOptError {
    NetOptError(
      .unsupported, phase: .receive,
      """
      libcurl \(release) has faults with HTTP/1.1 that netopt cannot work around: \(losesPausedBodies ? "a large response may fail when the program reads it slowly" : "")\
      \(losesPausedBodies && !showsChunks ? ", and " : "")\(showsChunks ? "" : "the size of a chunk is not always checked"). Use libcurl 8.7.0 or later, or one \
      before 8.3.0.
      """)
  }

  /// The names and versions of libcurl, its TLS library and nghttp2 that the process uses. Empty if libcurl
  /// could not be set up.
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
