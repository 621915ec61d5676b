import CCurl
import COpenSSL
import Glibc
import NetOptCore

/// The TLS connection below a transfer, if libcurl uses OpenSSL: the negotiated protocol, unread data, and
/// how the connection ended.
///
/// OpenSSL's functions are found at run time, as in `OpenSSL`. A `TLSConnection` is valid only within the
/// callback of libcurl that made it.
struct TLSConnection {
  /// OpenSSL's connection, an `SSL`, which libcurl owns.
  private let ssl: OpaquePointer
  private let functions: Functions

  /// `nil` when the transfer has no connection, the connection has no TLS, or TLS comes from another library.
  init?(of easy: EasyHandle) {
    guard let functions = Functions.loaded else { return nil }
    var pointer: UnsafeMutableRawPointer?
    netopt_getinfo_pointer(easy.raw, CURLINFO_TLS_SSL_PTR, &pointer)
    let session = pointer?.assumingMemoryBound(to: curl_tlssessioninfo.self).pointee
    guard session?.backend == CURLSSLBACKEND_OPENSSL, let ssl = session?.internals else { return nil }
    self.ssl = OpaquePointer(ssl)
    self.functions = functions
  }

  /// The TLS connection to a proxy; `nil` when its handshake has not begun, or OpenSSL has freed it. From
  /// 8.15.0 on, libcurl does not give this connection for plain HTTP through a proxy
  /// (CURLINFO_TLS_SSL_PTR(3)).
  init?(_ proxy: ProxyTLS?) {
    guard let functions = Functions.loaded, let ssl = proxy?.ssl else { return nil }
    self.ssl = ssl
    self.functions = functions
  }

  /// The version of the protocol, such as "TLSv1.3".
  var version: String? { functions.version(ssl).map { String(cString: $0) } }

  /// Whether the peer chose HTTP/2 (RFC 7301; SSL_get0_alpn_selected(3)).
  var choseHTTP2: Bool {
    var name: UnsafePointer<UInt8>?
    var length: UInt32 = 0
    functions.alpn(ssl, &name, &length)
    guard let name, length == 2 else { return false }
    return name[0] == 0x68 && name[1] == 0x32
  }

  /// Whether the handshake resumed a session.
  var isResumed: Bool { functions.isResumed(ssl) == 1 }

  /// Makes OpenSSL record in a `LiveConnection` how the peer ends TLS. OpenSSL retains the `LiveConnection`
  /// until it frees the TLS connection.
  ///
  /// - Returns: false when OpenSSL cannot do so, or already does so for a `LiveConnection`.
  func report(to connection: LiveConnection) -> Bool {
    guard functions.index >= 0, functions.getData(ssl, functions.index) == nil else { return false }
    let record = Unmanaged.passRetained(connection)
    if functions.setData(ssl, functions.index, record.toOpaque()) == 1 { return true }
    record.release()
    return false
  }

  /// The reader that limits how much of the connection is read; `nil` if it has none.
  var reader: RecordReader? { RecordReader.of(ssl) }

  /// Whether OpenSSL has read bytes from the socket that libcurl has not taken: data, or the beginning of a
  /// record.
  var hasBufferedData: Bool {
    // OpenSSL does not count the header of a record.
    functions.hasPending(ssl) == 1 || reader?.budget.isInRecord == true
  }

  /// Stops the reports of the connection's records (`OpenSSL.watchRecords`). Before TLS 1.3, certificates are
  /// still checked, because a renegotiation can bring new certificates.
  func endWatch() {
    functions.setWatch(ssl, version == "TLSv1.3" ? nil : OpenSSL.watchesCertificates)
  }

  /// Returns the `LiveConnection` that `report` stored for a TLS connection; `nil` if none was stored. For
  /// OpenSSL's callbacks.
  static func record(of ssl: OpaquePointer) -> LiveConnection? {
    guard let functions = Functions.loaded, functions.index >= 0 else { return nil }
    return functions.getData(ssl, functions.index).map {
      Unmanaged<LiveConnection>.fromOpaque($0).takeUnretainedValue()
    }
  }

  /// Whether a handshake is in progress, on this connection or on the connection to the proxy below it.
  /// OpenSSL sends no data until the handshake ends. A handshake after the first one is a renegotiation (TLS
  /// 1.2).
  var isInHandshake: Bool { reader?.isInHandshake == true }

  /// Whether application data is ready that libcurl has not read. To find out, this call reads messages of
  /// TLS itself, such as session tickets. They do not count as application data.
  ///
  /// - Parameter descriptor: the socket directly below TLS, or `nil` when something else is directly below
  ///   TLS.
  /// - Returns: true also when netopt cannot find out; `nil` when the connection has ended.
  func hasUnreadData(on descriptor: Int32?) -> Bool? {
    if hasBufferedData { return true }
    // libcurl's BIOs work only within libcurl's own calls, so this call replaces them until it returns. It
    // also replaces the BIO for writing, because OpenSSL may answer a message that it reads.
    guard let descriptor, let reading = functions.readBIO(ssl), let writing = functions.writeBIO(ssl),
      let socket = functions.socketBIO(descriptor, 0), let limited = RecordReader.make(for: ssl, over: socket)
    else { return true }
    _ = functions.retain(socket)
    _ = functions.retain(reading)
    _ = functions.retain(writing)
    let usual = reader
    if let usual { limited.reader.budget = usual.budget }
    functions.setReadBIO(ssl, limited.bio)
    functions.setWriteBIO(ssl, socket)
    var byte: UInt8 = 0
    functions.clearErrors()
    let count = functions.peek(ssl, &byte, 1)
    let reason = functions.error(ssl, count)
    functions.clearErrors()
    usual?.budget = limited.reader.budget
    functions.setReadBIO(ssl, reading)
    functions.setWriteBIO(ssl, writing)
    // If a record has already begun to arrive, its data is no response to a request that is sent later.
    if count > 0 || hasBufferedData || limited.reader.hasRefused { return true }
    // SSL_ERROR_WANT_READ means that no data is ready. Any other result counts as the end of the connection.
    return reason == netopt_ssl_error_want_read ? false : nil
  }

  /// OpenSSL's functions. Their types are those of the man pages, and nothing checks the types:
  /// SSL_get_version(3), SSL_get0_alpn_selected(3), SSL_session_reused(3), SSL_CTX_set_msg_callback(3),
  /// SSL_has_pending(3), SSL_read(3), SSL_get_error(3), SSL_set0_rbio(3), SSL_set0_wbio(3), SSL_get_rbio(3), BIO_s_socket(3),
  /// BIO_up_ref(3), ERR_clear_error(3), CRYPTO_get_ex_new_index(3), SSL_set_ex_data(3).
  /// `init` shows which function each property is.
  private struct Functions: Sendable {
    typealias SSL = OpaquePointer
    typealias BIO = OpaquePointer

    let version: @convention(c) (SSL) -> UnsafePointer<CChar>?
    let alpn:
      @convention(c) (SSL, UnsafeMutablePointer<UnsafePointer<UInt8>?>, UnsafeMutablePointer<UInt32>) -> Void
    let isResumed: @convention(c) (SSL) -> Int32
    let setWatch: @convention(c) (SSL, OpenSSL.Watch?) -> Void
    let hasPending: @convention(c) (SSL) -> Int32
    let peek: @convention(c) (SSL, UnsafeMutableRawPointer, Int32) -> Int32
    let error: @convention(c) (SSL, Int32) -> Int32
    let readBIO: @convention(c) (SSL) -> BIO?
    let setReadBIO: @convention(c) (SSL, BIO) -> Void
    let writeBIO: @convention(c) (SSL) -> BIO?
    let setWriteBIO: @convention(c) (SSL, BIO) -> Void
    let socketBIO: @convention(c) (Int32, Int32) -> BIO?
    let retain: @convention(c) (BIO) -> Int32
    let clearErrors: @convention(c) () -> Void
    let setData: @convention(c) (SSL, Int32, UnsafeMutableRawPointer?) -> Int32
    let getData: @convention(c) (SSL, Int32) -> UnsafeMutableRawPointer?
    /// The index under which OpenSSL keeps the `LiveConnection` of a TLS connection; negative when OpenSSL
    /// gives none.
    let index: Int32
    /// The functions; `nil` without `OpenSSL.loaded`, or if `init` throws.
    static let loaded: Functions? = OpenSSL.loaded == nil ? nil : try? Functions()

    private init() throws(OpenSSL.MissingFunction) {
      version = try OpenSSL.function("SSL_get_version")
      alpn = try OpenSSL.function("SSL_get0_alpn_selected")
      isResumed = try OpenSSL.function("SSL_session_reused")
      setWatch = try OpenSSL.function("SSL_set_msg_callback")
      hasPending = try OpenSSL.function("SSL_has_pending")
      peek = try OpenSSL.function("SSL_peek")
      error = try OpenSSL.function("SSL_get_error")
      readBIO = try OpenSSL.function("SSL_get_rbio")
      setReadBIO = try OpenSSL.function("SSL_set0_rbio")
      writeBIO = try OpenSSL.function("SSL_get_wbio")
      setWriteBIO = try OpenSSL.function("SSL_set0_wbio")
      socketBIO = try OpenSSL.function("BIO_new_socket")
      retain = try OpenSSL.function("BIO_up_ref")
      clearErrors = try OpenSSL.function("ERR_clear_error")
      setData = try OpenSSL.function("SSL_set_ex_data")
      getData = try OpenSSL.function("SSL_get_ex_data")
      let newIndex: OpenSSL.NewIndex = try OpenSSL.function("CRYPTO_get_ex_new_index")
      // Releases the `LiveConnection` that was retained for the TLS connection.
      index = newIndex(netopt_ex_index_connection, 0, nil, nil, nil) { _, record, _, _, _, _ in
        if let record { Unmanaged<LiveConnection>.fromOpaque(record).release() }
      }
    }
  }
}
