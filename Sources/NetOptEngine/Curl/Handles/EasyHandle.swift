import CCurl
import NetOptCore

/// Owns one libcurl easy handle (libcurl-easy(3)) and performs many transfers with it, one after the other.
///
/// Options with the same value for all transfers are set once. The other options are set for a transfer only
/// if their values differ from those of the previous transfer. This takes a quarter of the time of resetting
/// the handle and setting all options. Confined to the loop of its `CurlMulti`.
final class EasyHandle {
  /// The `CURL`; `raw` is the same pointer with another type.
  let pointer: OpaquePointer
  /// The size in bytes of libcurl's receive buffer. Set only for a libcurl that stops in the middle of an
  /// HTTP/2 head that is longer than the buffer (`CurlLibrary.stopsAtLongHeads`). libcurl accepts no HTTP/2
  /// head of more than 128 KiB (`DYN_H2_HEADERS`), so every head that it accepts fits.
  private static let headBuffer = 128 * 1024
  /// The value of CURLAUTH_BASIC, a macro that Swift does not import.
  private static let basic = 1

  /// The transfer that the handle performs, for the callbacks; `nil` while the handle is idle.
  var transfer: Transfer?

  /// The value of User-Agent for requests without this field (`CurlConfiguration.userAgent`).
  private let userAgent: String
  /// The buffer to which libcurl writes why a transfer failed.
  private let errorBuffer: UnsafeMutablePointer<CChar>
  /// The values of the options that are set on the handle; `nil` before the first transfer, and when setting
  /// the options failed.
  private var settings: Settings?
  /// The URL that is set on the handle. libcurl reads it when a transfer begins, so it must be kept alive.
  private var url: URLHandle?
  /// The TLS sessions that are set on the handle. The handle uses them, so they must be kept alive.
  private var sessions: SessionCache?
  /// The parts of the request that are set on the handle; `nil` before the first transfer.
  private var head: RequestHead?
  /// The header lines that are set (CURLOPT_HTTPHEADER(3)). libcurl does not copy the list; this object owns
  /// it.
  private var headers: UnsafeMutablePointer<curl_slist>?
  /// The endpoint in `connectTo`; `nil` for none.
  private var endpoint: IPEndpoint?
  /// The list for CURLOPT_CONNECT_TO(3) that is set. libcurl does not copy it; this object owns it.
  private var connectTo: UnsafeMutablePointer<curl_slist>?

  /// The parts of a request that are set only if they differ from those of the previous transfer.
  private struct RequestHead: Equatable {
    var method: MethodSettings
    var fields: HeaderFields
    /// Whether the header lines include Accept-Encoding for the supported codings.
    var decompress: Bool
  }

  /// The settings for the request's method and body. They change less often than the fields.
  private struct MethodSettings: Equatable {
    /// Whether the request sends a body, which may be empty.
    var sendsBody: Bool
    var method: NetOptRequest.Method
    /// The length of the body in bytes; `nil` if it is unknown.
    var length: Int64?
  }

  /// The values for options that are set only if they differ from those of the previous transfer.
  fileprivate struct Settings {
    var verification: RequestOptions.Verification
    var connectTimeout: Duration
    var connectionClass: ConnectionClass
    /// Whether the transfer must open a new connection (`Transfer.opensNew`). Later transfers may reuse that
    /// connection.
    var opensNew: Bool
    /// Whether the request requires a new connection that no other request uses, without a resumed TLS
    /// session (`RequestOptions.ConnectionUse.fresh`).
    var fresh: Bool
    /// The URL of the proxy; `nil` for none.
    var proxy: String?
    var tls: HostTLS
  }

  /// - Throws: `libraryFailed` when libcurl gives no handle; `invalidConfiguration` when libcurl refuses a
  ///   setting.
  init(_ configuration: CurlConfiguration, callbackState: CallbackState) throws(NetOptError) {
    guard let pointer = curl_easy_init() else {
      throw NetOptError(.libraryFailed, phase: .send, "curl_easy_init returned no handle: out of memory")
    }
    self.pointer = OpaquePointer(pointer)
    userAgent = configuration.userAgent
    errorBuffer = .allocate(capacity: Int(CURL_ERROR_SIZE))
    errorBuffer.pointee = 0
    // If an error is thrown from here on, `deinit` cleans up.
    try setConstants(configuration, callbackState)
  }

  deinit {
    curl_easy_cleanup(raw)
    curl_slist_free_all(headers)
    curl_slist_free_all(connectTo)
    errorBuffer.deallocate()
  }

  var raw: UnsafeMutableRawPointer { UnsafeMutableRawPointer(pointer) }

  /// Sets the options that have the same value for all transfers.
  private func setConstants(
    _ configuration: CurlConfiguration, _ callbackState: CallbackState
  ) throws(NetOptError) {
    netopt_setopt_pointer(raw, CURLOPT_ERRORBUFFER, errorBuffer)
    set(CURLOPT_NOSIGNAL, 1)
    // 322 is the number of CURLOPT_QUICK_EXIT, which the headers of releases before 7.87.0 lack. libcurl
    // looks up the name of a proxy on a separate thread. Without this option libcurl waits for that thread
    // when the call ends.
    set(CURLoption(rawValue: 322), 1)
    set(CURLOPT_PATH_AS_IS, 1)
    set(CURLOPT_TCP_KEEPALIVE, 1)
    // See `PeerCertificate`.
    set(CURLOPT_CERTINFO, OpenSSL.loaded == nil ? 1 : 0)
    if CurlLibrary.stopsAtLongHeads { set(CURLOPT_BUFFERSIZE, Self.headBuffer) }
    set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
    set(CURLOPT_PROTOCOLS_STR, "http,https")
    // No GSSAPI: with it, libcurl waits on the loop's thread for the proxy's tokens, without a time limit.
    set(CURLOPT_SOCKS5_AUTH, Self.basic)
    set(CURLOPT_MAXAGE_CONN, Int(configuration.idleAge.components.seconds))
    if let lifetime = configuration.lifetime {
      set(CURLOPT_MAXLIFETIME_CONN, Int(lifetime.components.seconds))
    }
    set(CURLOPT_PROXY_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
    // libcurl reads no authorities: each context gets a `TrustStore`. Without OpenSSL, libcurl reads them.
    if OpenSSL.loaded != nil, CurlLibrary.authorityFile != nil {
      set(CURLOPT_CAINFO, nil as String?)
      set(CURLOPT_PROXY_CAINFO, nil as String?)
    }
    // Debian's libcurl also has a directory of authorities, which would be read at each connection, and
    // would stay trusted beside a file.
    if CurlLibrary.authorityFile != nil {
      set(CURLOPT_CAPATH, nil as String?)
      set(CURLOPT_PROXY_CAPATH, nil as String?)
    }
    let this = Unmanaged.passUnretained(self).toOpaque()
    setCallbacks(this: this, callbackState: Unmanaged.passUnretained(callbackState).toOpaque())
  }

  /// Sets the options for one transfer.
  ///
  /// - Parameters:
  ///   - url: the request's URL.
  ///   - sessions: the TLS sessions that a new connection may resume.
  func prepare(
    for transfer: Transfer, _ url: URLHandle, _ sessions: SessionCache?
  ) throws(NetOptError) {
    self.transfer = transfer
    errorBuffer.pointee = 0
    isVerbose = transfer.proxy != nil && CurlLibrary.foldsIntoFreedFields
    let request = transfer.exchange.request
    if url !== self.url {
      netopt_setopt_curlu(raw, url.pointer)
      self.url = url
    }
    if sessions !== self.sessions {
      netopt_setopt_pointer(raw, CURLOPT_SHARE, sessions.map { UnsafeMutableRawPointer($0.pointer) })
      self.sessions = sessions
    }
    setHead(request)
    setEndpoint(transfer.endpoint)
    if settings?.isWanted(by: transfer) != true { try apply(Settings(transfer)) }
  }

  /// Drops the reference to the transfer, so that the idle handle does not keep the caller's body alive.
  /// Resets the options that only this transfer needed.
  func release() {
    transfer = nil
    isVerbose = false
    ignoresLength = false
  }

  /// Makes libcurl free the piece of a body that it kept for a paused transfer. If libcurl by itself ends a
  /// paused transfer while other transfers use the connection, it keeps the piece, even when the handle is
  /// freed (`multi_done` and `Curl_close` of 7.88). If no other transfer uses the connection, libcurl frees
  /// the piece at the end of the transfer.
  ///
  /// The method performs a transfer of an empty file, at whose end libcurl frees the piece. After the call
  /// the handle cannot perform requests. The handle must not be in a multi handle.
  func dropPiece() {
    curl_easy_reset(raw)
    set(CURLOPT_NOSIGNAL, 1)
    set(CURLOPT_URL, "file:///dev/null")
    netopt_setopt_data(raw, CURLOPT_WRITEFUNCTION) { _, size, count, _ in size * count }
    curl_easy_perform(raw)
  }

  /// libcurl's text about why the transfer failed.
  var errorText: CurlErrorText { CurlErrorText(String(cString: errorBuffer)) }

  /// Whether libcurl calls the debug callback with what it reads and writes (CURLOPT_VERBOSE(3)).
  var isVerbose = false {
    didSet { if isVerbose != oldValue { set(CURLOPT_VERBOSE, isVerbose ? 1 : 0) } }
  }

  /// Whether libcurl ignores Content-Length (CURLOPT_IGNORE_CONTENT_LENGTH(3)), so that it takes the end of
  /// the HTTP/2 stream for the end of the response.
  var ignoresLength = false {
    didSet { if ignoresLength != oldValue { set(CURLOPT_IGNORE_CONTENT_LENGTH, ignoresLength ? 1 : 0) } }
  }

  /// Sets all options of `Settings`.
  private func apply(_ wanted: Settings) throws(NetOptError) {
    settings = nil
    set(CURLOPT_SSL_VERIFYPEER, wanted.verification == .full ? 1 : 0)
    set(CURLOPT_SSL_VERIFYHOST, wanted.verification == .full ? 2 : 0)
    let offersHTTP2 = wanted.connectionClass.offersHTTP2
    set(CURLOPT_HTTP_VERSION, Int(offersHTTP2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1))
    // A libcurl without IPv6 refuses this option, and does not use the number in the keys of its bundles.
    // Then only the gate keeps a transfer off a connection that it must not share.
    set(CURLOPT_ADDRESS_SCOPE, Int(wanted.connectionClass.bundle))
    set(CURLOPT_CONNECTTIMEOUT_MS, Int(max(1, wanted.connectTimeout.nanoseconds / 1_000_000)))
    // A transfer that offers HTTP/2 waits for a connection that another transfer is opening. If that
    // connection speaks HTTP/2, it can carry both requests.
    set(CURLOPT_PIPEWAIT, offersHTTP2 ? 1 : 0)
    set(CURLOPT_FRESH_CONNECT, wanted.fresh || wanted.opensNew ? 1 : 0)
    set(CURLOPT_FORBID_REUSE, wanted.fresh ? 1 : 0)
    set(CURLOPT_SSL_SESSIONID_CACHE, wanted.fresh ? 0 : 1)
    // A CONNECT contains none of the request's header lines (CURLOPT_HEADEROPT(3)). This option gives the
    // proxy its User-Agent.
    set(CURLOPT_USERAGENT, wanted.proxy == nil ? nil : userAgent)
    if let proxy = wanted.proxy, let fault = ProxyURL.fault(of: proxy) {
      throw NetOptError(
        .invalidConfiguration, phase: .connect,
        "the proxy \(ProxyURL.shown(proxy)) cannot be used: \(fault) in its URL")
    }
    // libcurl calls the progress callback only for transfers through a proxy (`Transfer.mayContinueTunnel`).
    set(CURLOPT_NOPROGRESS, wanted.proxy == nil ? 1 : 0)
    // The empty strings keep libcurl from reading `http_proxy`, `no_proxy` and the like from the environment.
    // netopt chose the proxy when it planned the route.
    guard set(CURLOPT_PROXY, wanted.proxy ?? "") == CURLE_OK, set(CURLOPT_NOPROXY, "") == CURLE_OK else {
      throw NetOptError(.invalidConfiguration, phase: .connect, "libcurl cannot use the URL of the proxy")
    }
    try apply(wanted.tls)
    settings = wanted
  }

  /// Sets the options for the TLS connections to the transfer's host. `HostTLS.apply` sets the others.
  private func apply(_ tls: HostTLS) throws(NetOptError) {
    let settings = tls.settings
    let oldest = settings.minimumVersion == .tls13 ? CURL_SSLVERSION_TLSv1_3 : CURL_SSLVERSION_TLSv1_2
    let newest =
      switch settings.maximumVersion {
      case .tls12: CURL_SSLVERSION_MAX_TLSv1_2
      case .tls13: CURL_SSLVERSION_MAX_TLSv1_3
      case nil: CURL_SSLVERSION_MAX_DEFAULT
      }
    set(CURLOPT_SSLVERSION, Int(oldest) | Int(newest))
    set(CURLOPT_SSL_CIPHER_LIST, settings.safeCipherList)
    set(CURLOPT_TLS13_CIPHERS, settings.cipherSuites)
    guard set(CURLOPT_PINNEDPUBLICKEY, tls.pins) == CURLE_OK else {
      throw NetOptError(
        .unsupported, phase: .tls, "this libcurl cannot compare the server's key with pins (tls.pins)")
    }
  }

  /// Sets the method, the body's length and the header lines, as far as they differ from the previous
  /// transfer.
  private func setHead(_ request: NetOptRequest) {
    let sendsBody =
      if case .none = request.body.source {
        // These methods announce a body, even if the body is empty (RFC 9110, section 8.6).
        request.method != .get
          && (request.method == .post || request.method == .put || request.method == .patch)
      } else {
        // If a HEAD request were sent as an upload, libcurl would wait for the body that the response
        // announces. That body never comes.
        request.method != .head
      }
    let wanted = RequestHead(
      method: MethodSettings(sendsBody: sendsBody, method: request.method, length: request.body.length),
      fields: request.headers, decompress: request.options.decompress)
    guard wanted != head else { return }
    if wanted.method != head?.method { setMethod(wanted.method) }
    head = wanted
    setHeaders(RequestLines.make(for: request, userAgent: userAgent))
  }

  /// Sets the method, and whether libcurl sends a body.
  private func setMethod(_ settings: MethodSettings) {
    // HTTPGET resets what a previous upload or HEAD set (CURLOPT_HTTPGET(3)).
    set(CURLOPT_HTTPGET, 1)
    if settings.sendsBody {
      set(CURLOPT_UPLOAD, 1)
      // Without this option, libcurl stops sending when an error response arrives early. It ends a body of
      // unknown length as if the body were complete, and the server would take the part for the whole body.
      set(CURLOPT_KEEP_SENDING_ON_ERROR, settings.length == nil ? 1 : 0)
      setOffset(CURLOPT_INFILESIZE_LARGE, settings.length ?? -1)
      set(CURLOPT_CUSTOMREQUEST, settings.method.rawValue)
    } else if settings.method == .head {
      set(CURLOPT_CUSTOMREQUEST, nil as String?)
      set(CURLOPT_NOBODY, 1)
    } else {
      set(CURLOPT_CUSTOMREQUEST, settings.method == .get ? nil : settings.method.rawValue)
    }
  }

  /// Replaces the header lines.
  private func setHeaders(_ lines: [String]) {
    var list: UnsafeMutablePointer<curl_slist>?
    // `curl_slist_append` walks from the given node to the end of the list, so this keeps the last node.
    var last: UnsafeMutablePointer<curl_slist>?
    for line in lines {
      last = curl_slist_append(last, line).map { $0.pointee.next ?? $0 }
      if list == nil { list = last }
    }
    netopt_setopt_slist(raw, CURLOPT_HTTPHEADER, list)
    curl_slist_free_all(headers)
    headers = list
  }

  /// Makes libcurl connect to an endpoint instead of the URL's host and port. `nil` removes an earlier
  /// endpoint.
  ///
  /// The entry for CURLOPT_CONNECT_TO(3) has no host and no port, so it applies to every URL. This is safe,
  /// because libcurl does not follow redirects here and requests only the transfer's URL. With a host and a
  /// port in the entry, libcurl would compare both with the URL. The comparison takes a fiftieth of the work
  /// for a request.
  private func setEndpoint(_ wanted: IPEndpoint?) {
    guard wanted != endpoint else { return }
    let list = wanted.flatMap { curl_slist_append(nil, "::\($0)") }
    netopt_setopt_slist(raw, CURLOPT_CONNECT_TO, list)
    curl_slist_free_all(connectTo)
    connectTo = list
    endpoint = wanted
  }

  // MARK: Typed access (curl_easy_setopt(3), curl_easy_getinfo(3))

  @discardableResult
  func set(_ option: CURLoption, _ value: Int) -> CURLcode { netopt_setopt_long(raw, option, value) }

  @discardableResult
  func set(_ option: CURLoption, _ value: String?) -> CURLcode { netopt_setopt_string(raw, option, value) }

  @discardableResult
  private func setOffset(_ option: CURLoption, _ value: Int64) -> CURLcode {
    netopt_setopt_off(raw, option, curl_off_t(value))
  }

  func info(_ key: CURLINFO) -> Int {
    var value = 0
    netopt_getinfo_long(raw, key, &value)
    return value
  }

  /// The number of bytes of the request's body that libcurl takes for sent.
  var uploadedBytes: Int {
    var value: curl_off_t = 0
    netopt_getinfo_off(raw, CURLINFO_SIZE_UPLOAD_T, &value)
    return Int(value)
  }

  func info(_ key: CURLINFO) -> String? {
    var value: UnsafeMutablePointer<CChar>?
    netopt_getinfo_string(raw, key, &value)
    return value.map { String(cString: $0) }
  }
}

extension EasyHandle.Settings {
  fileprivate init(_ transfer: Transfer) {
    verification = transfer.exchange.request.options.verification
    connectTimeout = transfer.exchange.request.options.connectTimeout
    connectionClass = transfer.connectionClass
    opensNew = transfer.opensNew
    fresh = transfer.exchange.request.options.connection == .fresh
    proxy = transfer.proxy
    tls = transfer.bundles.tls
  }

  /// Whether a transfer needs the same settings. The properties are compared one by one, because making a
  /// second `Settings` for the comparison would cost 400 instructions per request.
  @inline(__always)
  fileprivate func isWanted(by transfer: Transfer) -> Bool {
    opensNew == transfer.opensNew && fresh == (transfer.exchange.request.options.connection == .fresh)
      && verification == transfer.exchange.request.options.verification
      && connectTimeout == transfer.exchange.request.options.connectTimeout
      && connectionClass == transfer.connectionClass && proxy == transfer.proxy
      && tls === transfer.bundles.tls
  }
}
