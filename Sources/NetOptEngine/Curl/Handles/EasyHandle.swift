import CCurl
import NetOptCore

/// Owns one libcurl easy handle (libcurl-easy(3)) for many transfers, one after the other.
///
/// What is the same for all of them is set once; what differs is set each time, and skipped when it is already so:
/// that costs a quarter of resetting the handle. Confined to the loop of its `CurlMulti`.
final class EasyHandle {
  let pointer: OpaquePointer
  /// What a head over HTTP/2 may take: see `CurlLibrary.stopsAtLongHeads`. libcurl gives up at longer ones (`DYN_H2_HEADERS`).
  private static let headBuffer = 128 * 1024
  /// CURLAUTH_BASIC, a macro that Swift does not see.
  private static let basic = 1

  /// The transfer that the handle performs; callbacks get to it from here.
  var transfer: Transfer?

  private let userAgent: String
  private let caFile: String?
  /// Where libcurl says why a transfer failed.
  private let errorBuffer: UnsafeMutablePointer<CChar>
  private var settings: Settings?
  /// libcurl reads it when the transfer begins, so it lives as long as it is set.
  private var url: URLHandle?
  /// Kept as long as the handle uses it.
  private var sessions: SessionCache?
  private var head = RequestHead()
  private var headers: UnsafeMutablePointer<curl_slist>?
  private var endpoint: IPEndpoint?
  private var connectTo: UnsafeMutablePointer<curl_slist>?

  /// Of the request, what is only set when it differs from the transfer before.
  private struct RequestHead: Equatable {
    var method = MethodSettings()
    var fields: HeaderFields = [:]
    var decompress = false
  }

  /// How libcurl is to send a request. It differs less often than the fields.
  private struct MethodSettings: Equatable {
    /// Whether there is a body to be sent, be it an empty one.
    var sendsBody = false
    var method = NetOptRequest.Method.get
    var length: Int64? = 0
  }

  /// Of the options, what is only set when it differs from the transfer before.
  fileprivate struct Settings {
    var verification: RequestOptions.Verification
    var connectTimeout: Duration
    var connectionClass: ConnectionClass
    var opensNew: Bool
    var fresh: Bool
    var proxy: String?
  }

  /// - Throws: `libraryFailed` when libcurl gives no handle, `invalidConfiguration` when it refuses a setting.
  init(_ configuration: CurlConfiguration, records: TurnRecords) throws(NetOptError) {
    guard let pointer = curl_easy_init() else {
      throw NetOptError(.libraryFailed, phase: .send, "curl_easy_init gave no handle: out of memory")
    }
    self.pointer = OpaquePointer(pointer)
    userAgent = configuration.userAgent
    caFile = configuration.caFile
    errorBuffer = .allocate(capacity: Int(CURL_ERROR_SIZE))
    errorBuffer.pointee = 0
    // What throws from here on leaves the rest to `deinit`.
    try setConstants(configuration, records)
  }

  deinit {
    curl_easy_cleanup(raw)
    curl_slist_free_all(headers)
    curl_slist_free_all(connectTo)
    errorBuffer.deallocate()
  }

  var raw: UnsafeMutableRawPointer { UnsafeMutableRawPointer(pointer) }

  private func setConstants(
    _ configuration: CurlConfiguration, _ records: TurnRecords
  ) throws(NetOptError) {
    netopt_setopt_pointer(raw, CURLOPT_ERRORBUFFER, errorBuffer)
    set(CURLOPT_NOSIGNAL, 1)
    // The name of a proxy is looked up on a thread of libcurl's, for which it would wait when the call ends. Since 7.87.0.
    // The number is CURLOPT_QUICK_EXIT's, which older headers do not have.
    set(CURLoption(rawValue: 322), 1)
    set(CURLOPT_PATH_AS_IS, 1)
    set(CURLOPT_TCP_KEEPALIVE, 1)
    // See `PeerCertificate`.
    set(CURLOPT_CERTINFO, OpenSSL.loaded == nil ? 1 : 0)
    if CurlLibrary.stopsAtLongHeads { set(CURLOPT_BUFFERSIZE, Self.headBuffer) }
    set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
    set(CURLOPT_PROTOCOLS_STR, "http,https")
    // Without GSSAPI: libcurl waits for the proxy's tokens on the loop's thread, however long they take.
    set(CURLOPT_SOCKS5_AUTH, Self.basic)
    set(CURLOPT_MAXAGE_CONN, Int(configuration.idleAge.components.seconds))
    if let lifetime = configuration.lifetime {
      set(CURLOPT_MAXLIFETIME_CONN, Int(lifetime.components.seconds))
    }
    if let caFile = configuration.caFile {
      // A proxy that speaks TLS is trusted no further than servers are.
      guard set(CURLOPT_CAINFO, caFile) == CURLE_OK, set(CURLOPT_PROXY_CAINFO, caFile) == CURLE_OK else {
        throw NetOptError(
          .invalidConfiguration, phase: .tls, "libcurl's TLS library cannot read authorities from \(caFile)")
      }
    }
    // A CAPATH, which Debian's libcurl has by default, keeps libcurl from caching the parsed authorities: 20 ms of
    // CPU a connection. And with a file of one's own the system's authorities would stay trusted beside it.
    if configuration.caFile != nil || info(CURLINFO_CAINFO) != nil {
      set(CURLOPT_CAPATH, nil as String?)
      set(CURLOPT_PROXY_CAPATH, nil as String?)
    }
    let this = Unmanaged.passUnretained(self).toOpaque()
    setCallbacks(this: this, records: Unmanaged.passUnretained(records).toOpaque())
  }

  /// Sets everything for one transfer. The strings are copied by libcurl.
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

  /// Lets go of what belonged to the transfer. The caller's body is not kept alive by an idle handle.
  func release() {
    transfer = nil
    isVerbose = false
    ignoresLength = false
  }

  /// Has libcurl free what it holds back of a body. It keeps it when it ends a transfer that is paused by itself while others use the
  /// connection, also when the handle is freed (`multi_done` and `Curl_close` of 7.88). At the end of a transfer whose connection nobody
  /// else uses it frees it. The handle is of no more use for requests, and must not be in a multi handle.
  func dropPiece() {
    curl_easy_reset(raw)
    set(CURLOPT_NOSIGNAL, 1)
    set(CURLOPT_URL, "file:///dev/null")
    netopt_setopt_data(raw, CURLOPT_WRITEFUNCTION) { _, size, count, _ in size * count }
    curl_easy_perform(raw)
  }

  /// What libcurl has said about why the transfer failed.
  var words: FailureWords { FailureWords(String(cString: errorBuffer)) }

  /// What certificates are verified against.
  var authorities: Authorities { caFile.map { .named($0) } ?? .system(info(CURLINFO_CAINFO)) }

  /// Whether libcurl tells the transfer what it does (CURLOPT_VERBOSE(3)).
  var isVerbose = false {
    didSet { if isVerbose != oldValue { set(CURLOPT_VERBOSE, isVerbose ? 1 : 0) } }
  }

  /// Whether libcurl takes no notice of a Content-Length (CURLOPT_IGNORE_CONTENT_LENGTH(3)), and an answer ends with its stream.
  var ignoresLength = false {
    didSet { if ignoresLength != oldValue { set(CURLOPT_IGNORE_CONTENT_LENGTH, ignoresLength ? 1 : 0) } }
  }

  private func apply(_ wanted: Settings) throws(NetOptError) {
    settings = nil
    set(CURLOPT_SSL_VERIFYPEER, wanted.verification == .full ? 1 : 0)
    set(CURLOPT_SSL_VERIFYHOST, wanted.verification == .full ? 2 : 0)
    let offersHTTP2 = wanted.connectionClass.offersHTTP2
    set(CURLOPT_HTTP_VERSION, Int(offersHTTP2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1))
    // A libcurl without IPv6 refuses, and has no such number in its bundles' keys: then the gate alone keeps transfers apart.
    set(CURLOPT_ADDRESS_SCOPE, Int(wanted.connectionClass.bundle))
    set(CURLOPT_CONNECTTIMEOUT_MS, Int(max(1, wanted.connectTimeout.nanoseconds / 1_000_000)))
    // A connection that may turn out to carry many requests is waited for.
    set(CURLOPT_PIPEWAIT, offersHTTP2 ? 1 : 0)
    set(CURLOPT_FRESH_CONNECT, wanted.fresh || wanted.opensNew ? 1 : 0)
    set(CURLOPT_FORBID_REUSE, wanted.fresh ? 1 : 0)
    set(CURLOPT_SSL_SESSIONID_CACHE, wanted.fresh ? 0 : 1)
    // The empty string keeps libcurl from looking at the environment: that was done when the route was planned.
    // Of the lines a proxy gets none (CURLOPT_HEADEROPT(3)).
    set(CURLOPT_USERAGENT, wanted.proxy == nil ? nil : userAgent)
    if let proxy = wanted.proxy, let fault = ProxyURL.fault(of: proxy) {
      throw NetOptError(
        .invalidConfiguration, phase: .connect,
        "the proxy \(ProxyURL.shown(proxy)) cannot be used: \(fault) in its URL")
    }
    // See `Transfer.mayGoOn`.
    set(CURLOPT_NOPROGRESS, wanted.proxy == nil ? 1 : 0)
    guard set(CURLOPT_PROXY, wanted.proxy ?? "") == CURLE_OK, set(CURLOPT_NOPROXY, "") == CURLE_OK else {
      throw NetOptError(.invalidConfiguration, phase: .connect, "the proxy's URL is not one libcurl can use")
    }
    settings = wanted
  }

  private func setHead(_ request: NetOptRequest) {
    let sendsBody =
      if case .none = request.body.source {
        // These say that they have a body, be it an empty one (RFC 9110, section 8.6).
        request.method != .get
          && (request.method == .post || request.method == .put || request.method == .patch)
      } else {
        // As an upload libcurl would wait for the body that the answer to a HEAD announces and does not have.
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
    // HTTPGET undoes what an upload or a HEAD before it left behind (CURLOPT_HTTPGET(3)).
    set(CURLOPT_HTTPGET, 1)
    if settings.sendsBody {
      set(CURLOPT_UPLOAD, 1)
      // Without it libcurl ends a body of unknown length in order when an error comes early: the server takes the part for the whole.
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
    // libcurl looks for the end of what it is given to append to.
    var last: UnsafeMutablePointer<curl_slist>?
    for line in lines {
      last = curl_slist_append(last, line).map { $0.pointee.next ?? $0 }
      if list == nil { list = last }
    }
    netopt_setopt_slist(raw, CURLOPT_HTTPHEADER, list)
    curl_slist_free_all(headers)
    headers = list
  }

  /// Has the connection go to an address. Host and port of the URL are left out of the entry, so that it stands for every
  /// one: comparing them with the URL's costs as much as a fiftieth of a request, and there is only the one, since libcurl
  /// never follows a redirect here.
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

  /// Whether they are what a transfer needs. Field by field: two copies of them would cost each request 400 instructions.
  @inline(__always)
  fileprivate func isWanted(by transfer: Transfer) -> Bool {
    opensNew == transfer.opensNew && fresh == (transfer.exchange.request.options.connection == .fresh)
      && verification == transfer.exchange.request.options.verification
      && connectTimeout == transfer.exchange.request.options.connectTimeout
      && connectionClass == transfer.connectionClass && proxy == transfer.proxy
  }
}
