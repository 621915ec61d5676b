import CCurl
import Glibc
import Synchronization

/// The OpenSSL that libcurl uses, when it uses OpenSSL: found at run time, so that netopt also runs on a libcurl with
/// another TLS library.
struct OpenSSL: Sendable {
  private typealias GetVersion = @convention(c) (OpaquePointer) -> UnsafePointer<CChar>?
  private typealias NewSession = @convention(c) (OpaquePointer?, OpaquePointer?) -> Int32
  private typealias GetNewSession = @convention(c) (OpaquePointer) -> NewSession?
  private typealias SetNewSession = @convention(c) (OpaquePointer, NewSession?) -> Void
  private typealias Info = @convention(c) (OpaquePointer?, Int32, Int32) -> Void
  private typealias SetInfo = @convention(c) (OpaquePointer, Info?) -> Void
  private typealias GetSession = @convention(c) (OpaquePointer) -> OpaquePointer?
  private typealias SetSession = @convention(c) (OpaquePointer, OpaquePointer) -> Int32
  private typealias Control = @convention(c) (OpaquePointer, Int32, Int, OpaquePointer?) -> Int
  private typealias Duplicate = @convention(c) (OpaquePointer) -> OpaquePointer?
  private typealias Free = @convention(c) (OpaquePointer) -> Void

  private let getVersion: GetVersion
  private let getNewSession: GetNewSession
  private let setNewSession: SetNewSession
  private let setInfo: SetInfo
  private let getSession: GetSession
  private let setSession: SetSession
  private let control: Control
  private let duplicate: Duplicate
  private let free: Free

  /// `nil` with another library, or one older than OpenSSL 1.1.1.
  static let loaded: OpenSSL? = {
    guard let info = netopt_version_info()?.pointee, let name = info.ssl_version,
      String(cString: name).hasPrefix("OpenSSL/")
    else { return nil }
    return OpenSSL()
  }()

  private init?() {
    // The signatures are those of SSL_get_version(3), SSL_CTX_sess_set_new_cb(3), SSL_CTX_set_info_callback(3),
    // SSL_set_session(3) and SSL_SESSION_free(3).
    guard let getVersion = Self.symbol("SSL_get_version", GetVersion.self),
      let getNewSession = Self.symbol("SSL_CTX_sess_get_new_cb", GetNewSession.self),
      let setNewSession = Self.symbol("SSL_CTX_sess_set_new_cb", SetNewSession.self),
      let setInfo = Self.symbol("SSL_CTX_set_info_callback", SetInfo.self),
      let getSession = Self.symbol("SSL_get_session", GetSession.self),
      let setSession = Self.symbol("SSL_set_session", SetSession.self),
      let control = Self.symbol("SSL_CTX_ctrl", Control.self),
      let duplicate = Self.symbol("SSL_SESSION_dup", Duplicate.self),
      let free = Self.symbol("SSL_SESSION_free", Free.self)
    else { return nil }
    self.getVersion = getVersion
    self.getNewSession = getNewSession
    self.setNewSession = setNewSession
    self.setInfo = setInfo
    self.getSession = getSession
    self.setSession = setSession
    self.control = control
    self.duplicate = duplicate
    self.free = free
  }

  /// A function by its name. Nothing checks the type, which has to be that of the man page.
  private static func symbol<Function>(_ name: String, _ type: Function.Type) -> Function? {
    // RTLD_DEFAULT, a macro that Swift does not import.
    dlsym(UnsafeMutableRawPointer(bitPattern: 0), name).map { unsafeBitCast($0, to: type) }
  }

  /// The protocol's version on a transfer's connection, as "TLSv1.3".
  func version(of easy: EasyHandle) -> String? {
    var pointer: UnsafeMutableRawPointer?
    netopt_getinfo_pointer(easy.raw, CURLINFO_TLS_SSL_PTR, &pointer)
    let session = pointer?.assumingMemoryBound(to: curl_tlssessioninfo.self).pointee
    guard session?.backend == CURLSSLBACKEND_OPENSSL, let ssl = session?.internals else { return nil }
    return getVersion(OpaquePointer(ssl)).map { String(cString: $0) }
  }

  // MARK: Contexts

  /// Has connections keep their buffers for records, 34 KiB each. libcurl has OpenSSL free them after each record and make
  /// them anew for the next, which costs more than a request's share of memory is worth when many share a connection.
  ///
  /// - Parameter context: an `SSL_CTX` that libcurl has set up (CURLOPT_SSL_CTX_FUNCTION(3)).
  func keepBuffers(of context: OpaquePointer) {
    // SSL_CTX_clear_mode(3) is a macro for this: SSL_CTRL_CLEAR_MODE, SSL_MODE_RELEASE_BUFFERS.
    _ = control(context, 78, 0x10, nil)
  }

  /// libcurl's own callback for a new session, once it was seen: the same one in every context.
  private static let libcurlsNewSession = Atomic<UInt>(0)

  /// Has connections resume sessions as often as the server allows.
  ///
  /// libcurl does not shut TLS down when it closes an HTTP/2 connection, for which OpenSSL marks the connection's session
  /// as one that must not be resumed: SSL_set_shutdown(3). So libcurl's cache gets copies of new sessions, and a handshake
  /// resumes a copy of what is in the cache: copies of their own are marked by nobody.
  ///
  /// - Parameter context: an `SSL_CTX` that libcurl has set up (CURLOPT_SSL_CTX_FUNCTION(3)).
  func keepSessions(of context: OpaquePointer) {
    guard let callback = getNewSession(context) else { return }
    Self.libcurlsNewSession.store(
      UInt(bitPattern: unsafeBitCast(callback, to: Int.self)), ordering: .releasing)
    setNewSession(context) { ssl, session in
      let original = UnsafeRawPointer(bitPattern: OpenSSL.libcurlsNewSession.load(ordering: .acquiring))
      guard let openSSL = OpenSSL.loaded, let original, let session, let copy = openSSL.duplicate(session)
      else { return 0 }
      // It was stored as what it is turned into here.
      let keep = unsafeBitCast(original, to: NewSession.self)
      if keep(ssl, copy) == 0 { openSSL.free(copy) }
      // OpenSSL's own session stays its own.
      return 0
    }
    setInfo(context) { ssl, what, _ in
      guard what & OpenSSL.handshakeStart != 0, let openSSL = OpenSSL.loaded, let ssl,
        let session = openSSL.getSession(ssl), let copy = openSSL.duplicate(session)
      else { return }
      // It takes a reference of its own.
      _ = openSSL.setSession(ssl, copy)
      openSSL.free(copy)
    }
  }

  /// SSL_CB_HANDSHAKE_START of ssl.h.
  private static let handshakeStart: Int32 = 0x10
}
