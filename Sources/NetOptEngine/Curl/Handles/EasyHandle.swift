import CCurl
import NetOptCore

/// Owns one libcurl easy handle (libcurl-easy(3)) and performs many transfers with it, one after the other.
///
/// Settings that all transfers share are set once. Settings that differ are set for a transfer only if its
/// values differ from the previous ones. This costs a quarter of resetting the handle. Confined to the loop
/// of its `CurlMulti`.
final class EasyHandle {
  let pointer: OpaquePointer
  /// The receive buffer for long HTTP/2 heads, in bytes: see `CurlLibrary.stopsAtLongHeads`. libcurl refuses
  /// longer heads (`DYN_H2_HEADERS`).
  private static let headBuffer = 128 * 1024
  /// CURLAUTH_BASIC, a macro that Swift does not see.
  private static let basic = 1

  /// The transfer that the handle performs. Callbacks find the transfer here.
  var transfer: Transfer?

  private let userAgent: String
  private let caFile: String?
  /// The buffer to which libcurl writes why a transfer failed.
  private let errorBuffer: UnsafeMutablePointer<CChar>
  private var settings: Settings?
  /// The URL set on the handle. libcurl reads the URL when a transfer begins, so it must stay alive while it
  /// is set.
  private var url: URLHandle?
  /// The TLS sessions set on the handle, kept alive while it uses them.
  private var sessions: SessionCache?
  private var head = RequestHead()
  private var headers: UnsafeMutablePointer<curl_slist>?
  private var endpoint: IPEndpoint?
  private var connectTo: UnsafeMutablePointer<curl_slist>?

  /// The parts of the request that are set only if they differ from the previous transfer.
  private struct RequestHead: Equatable {
    var method = MethodSettings()
    var fields: HeaderFields = [:]
    var decompress = false
  }

  /// The settings for the request's method and body. They change less often than the fields.
  private struct MethodSettings: Equatable {
    /// Whether the request sends a body, which may be empty.
    var sendsBody = false
    var method = NetOptRequest.Method.get
    var length: Int64? = 0
  }

  /// The options that are set only if they differ from the previous transfer.
  fileprivate struct Settings {
    var verification: RequestOptions.Verification
    var connectTimeout: Duration
    var connectionClass: ConnectionClass
    var opensNew: Bool
    var fresh: Bool
    var proxy: String?
  }

  /// - Throws: `libraryFailed` when libcurl gives no handle; `invalidConfiguration` when libcurl refuses a
  ///   setting.
  init(_ configuration: CurlConfiguration, callbackState: CallbackState) throws(NetOptError) {
    guard let pointer = curl_easy_init() else {
      throw NetOptError(.libraryFailed, phase: .send, "curl_easy_init returned no handle: out of memory")
    }
    self.pointer = OpaquePointer(pointer)
    userAgent = configuration.userAgent
    caFile = configuration.caFile
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

  private func setConstants(
    _ configuration: CurlConfiguration, _ callbackState: CallbackState
  ) throws(NetOptError) {
    netopt_setopt_pointer(raw, CURLOPT_ERRORBUFFER, errorBuffer)
    set(CURLOPT_NOSIGNAL, 1)
    // libcurl looks up the name of a proxy on a thread of its own. Without this option libcurl waits for that
    // thread when the call ends. The option exists since 7.87.0. The number is that of CURLOPT_QUICK_EXIT,
    // which older headers lack.
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
    if let caFile = configuration.caFile {
      // A TLS proxy is verified against the same authorities as servers.
      guard set(CURLOPT_CAINFO, caFile) == CURLE_OK, set(CURLOPT_PROXY_CAINFO, caFile) == CURLE_OK else {
        throw NetOptError(
          .invalidConfiguration, phase: .tls,
          "libcurl's TLS library cannot read the certificate authorities in \(caFile)")
      }
    }
    // Debian's libcurl has a default CAPATH. A CAPATH keeps libcurl from caching the parsed authorities,
    // which costs 20 ms of CPU per connection. And with a custom file, the system's authorities would stay
    // trusted beside it.
    if configuration.caFile != nil || info(CURLINFO_CAINFO) != nil {
      set(CURLOPT_CAPATH, nil as String?)
      set(CURLOPT_PROXY_CAPATH, nil as String?)
    }
    let this = Unmanaged.passUnretained(self).toOpaque()
    setCallbacks(this: this, callbackState: Unmanaged.passUnretained(callbackState).toOpaque())
  }

  /// Sets everything for one transfer. libcurl copies the strings.
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

  /// Drops the handle's references to the transfer, so that an idle handle does not keep the caller's body
  /// alive.
  func release() {
    transfer = nil
    isVerbose = false
    ignoresLength = false
  }

  /// Makes libcurl free the piece of a body that it holds back. If libcurl itself ends a paused
  /// transfer while other transfers use the connection, it keeps the piece, even when the handle is freed
  /// (`multi_done` and `Curl_close` of 7.88). If no other transfer uses the connection, libcurl frees the
  /// piece at the end of the transfer.
  ///
  /// After the call the handle is useless for requests. The handle must not be in a multi handle.
  func dropPiece() {
    curl_easy_reset(raw)
    set(CURLOPT_NOSIGNAL, 1)
    set(CURLOPT_URL, "file:///dev/null")
    netopt_setopt_data(raw, CURLOPT_WRITEFUNCTION) { _, size, count, _ in size * count }
    curl_easy_perform(raw)
  }

  /// libcurl's text about why the transfer failed.
  var errorText: CurlErrorText { CurlErrorText(String(cString: errorBuffer)) }

  /// The authorities that certificates are verified against.
  var authorities: Authorities { caFile.map { .named($0) } ?? .system(info(CURLINFO_CAINFO)) }

  /// Whether libcurl reports what it does to the transfer (CURLOPT_VERBOSE(3)).
  var isVerbose = false {
    didSet { if isVerbose != oldValue { set(CURLOPT_VERBOSE, isVerbose ? 1 : 0) } }
  }

  /// Whether libcurl ignores Content-Length (CURLOPT_IGNORE_CONTENT_LENGTH(3)), so that a response ends with
  /// its stream.
  var ignoresLength = false {
    didSet { if ignoresLength != oldValue { set(CURLOPT_IGNORE_CONTENT_LENGTH, ignoresLength ? 1 : 0) } }
  }

  private func apply(_ wanted: Settings) throws(NetOptError) {
    settings = nil
    set(CURLOPT_SSL_VERIFYPEER, wanted.verification == .full ? 1 : 0)
    set(CURLOPT_SSL_VERIFYHOST, wanted.verification == .full ? 2 : 0)
    let offersHTTP2 = wanted.connectionClass.offersHTTP2
    set(CURLOPT_HTTP_VERSION, Int(offersHTTP2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1))
    // A libcurl without IPv6 refuses this option, and the keys of its bundles do not contain the number. Then
    // only the gate keeps transfers apart.
    set(CURLOPT_ADDRESS_SCOPE, Int(wanted.connectionClass.bundle))
    set(CURLOPT_CONNECTTIMEOUT_MS, Int(max(1, wanted.connectTimeout.nanoseconds / 1_000_000)))
    // With HTTP/2 offered, wait for a connection that is being opened: it may turn out to carry many
    // requests.
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
    // See `Transfer.mayContinueTunnel`.
    set(CURLOPT_NOPROGRESS, wanted.proxy == nil ? 1 : 0)
    // The empty string keeps libcurl from reading the proxy from the environment: netopt read it when it
    // planned the route.
    guard set(CURLOPT_PROXY, wanted.proxy ?? "") == CURLE_OK, set(CURLOPT_NOPROXY, "") == CURLE_OK else {
      throw NetOptError(.invalidConfiguration, phase: .connect, "libcurl cannot use the URL of the proxy")
    }
    settings = wanted
  }

  private func setHead(_ request: NetOptRequest) {
    let sendsBody =
      if case .none = request.body.source {
        // These methods announce a body, even if the body is empty (RFC 9110, section 8.6).
        request.method != .get
          && (request.method == .post || request.method == .put || request.method == .patch)
      } else {
        // For a HEAD request sent as an upload, libcurl would wait for the announced body, which never comes.
        request.method != .head
      }
    let wanted = RequestHead(
      method: MethodSettings(sendsBody: sendsBody, method: request.method, length: request.body.length),
      fields: request.headers, decompress: request.options.decompress)
    let isFirst = headers == nil
    guard wanted != head || isFirst else { return }
    if wanted.method != head.method || isFirst { setMethod(wanted.method) }
    head = wanted
    setHeaders(RequestLines.make(for: request, userAgent: userAgent))
  }

  private func setMethod(_ settings: MethodSettings) {
    // HTTPGET resets what a previous upload or HEAD set (CURLOPT_HTTPGET(3)).
    set(CURLOPT_HTTPGET, 1)
    if settings.sendsBody {
      set(CURLOPT_UPLOAD, 1)
      // When an error response arrives early, libcurl without this option ends a body of unknown length
      // properly. The server then takes the part for the whole body.
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

  /// Makes the connection go to an address. The CONNECT_TO entry has no host and no port, so that it applies
  /// to every URL. To compare a host and a port with the URL's would cost a fiftieth of a request. The
  /// handle needs no comparison: it requests only one URL, because libcurl never follows a redirect here.
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
  }

  /// Whether these settings fit a transfer. The fields are compared one by one, because copies of two
  /// `Settings` would cost 400 instructions per request.
  @inline(__always)
  fileprivate func isWanted(by transfer: Transfer) -> Bool {
    opensNew == transfer.opensNew && fresh == (transfer.exchange.request.options.connection == .fresh)
      && verification == transfer.exchange.request.options.verification
      && connectTimeout == transfer.exchange.request.options.connectTimeout
      && connectionClass == transfer.connectionClass && proxy == transfer.proxy
  }
}
