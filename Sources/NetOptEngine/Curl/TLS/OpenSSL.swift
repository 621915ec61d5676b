import CCurl
import COpenSSL
import Glibc
import NetOptCore
import Synchronization

/// The OpenSSL that libcurl uses, if it uses OpenSSL. The functions are found at run time, so that netopt
/// also runs with a libcurl that uses another TLS library. The constants are those of the headers that netopt
/// was built with (`COpenSSL`).
struct OpenSSL: Sendable {
  // The types of OpenSSL's functions and callbacks, as in the man pages that `init` names.
  /// A callback that gets each session that later connections may resume (SSL_CTX_sess_set_new_cb(3)).
  typealias NewSession = @convention(c) (OpaquePointer?, OpaquePointer?) -> Int32
  typealias GetNewSession = @convention(c) (OpaquePointer) -> NewSession?
  typealias SetNewSession = @convention(c) (OpaquePointer, NewSession?) -> Void
  /// A callback that OpenSSL calls for each step of a handshake and for each alert
  /// (SSL_CTX_set_info_callback(3)).
  private typealias Info = @convention(c) (OpaquePointer?, Int32, Int32) -> Void
  private typealias SetInfo = @convention(c) (OpaquePointer, Info?) -> Void
  /// A callback for TLS messages and records (SSL_CTX_set_msg_callback(3)).
  typealias Watch =
    @convention(c) (Int32, Int32, Int32, UnsafeRawPointer?, Int, OpaquePointer?, UnsafeMutableRawPointer?) ->
    Void
  private typealias SetWatch = @convention(c) (OpaquePointer, Watch?) -> Void
  /// A callback that allows or refuses a key, a group or another parameter of TLS
  /// (SSL_CTX_set_security_callback(3)).
  private typealias Security =
    @convention(c) (
      OpaquePointer?, OpaquePointer?, Int32, Int32, Int32, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?
    ) -> Int32
  private typealias GetSecurity = @convention(c) (OpaquePointer) -> Security?
  private typealias SetSecurity = @convention(c) (OpaquePointer, Security?) -> Void
  /// EVP_PKEY_get_bits(3), which returns the size of a key or a Diffie-Hellman group.
  private typealias KeyBits = @convention(c) (UnsafeMutableRawPointer) -> Int32
  typealias GetSession = @convention(c) (OpaquePointer) -> OpaquePointer?
  typealias SetSession = @convention(c) (OpaquePointer, OpaquePointer?) -> Int32
  /// SSL_SESSION_new(3).
  typealias Make = @convention(c) () -> OpaquePointer?
  /// SSL_SESSION_set1_ticket_appdata(3), which stores application data in a session.
  typealias SetData = @convention(c) (OpaquePointer, UnsafeRawPointer?, Int) -> Int32
  /// SSL_SESSION_get0_ticket_appdata(3), which returns a session's application data.
  typealias GetData =
    @convention(c) (
      OpaquePointer, UnsafeMutablePointer<UnsafePointer<UInt8>?>, UnsafeMutablePointer<Int>
    ) -> Int32
  /// SSL_CTX_ctrl(3), which takes the number of a command.
  typealias Control = @convention(c) (OpaquePointer, Int32, Int, OpaquePointer?) -> Int
  typealias SetOptions = @convention(c) (OpaquePointer, UInt64) -> UInt64
  /// i2d_SSL_SESSION(3), which writes a session as bytes, and d2i_SSL_SESSION(3), which reads the bytes.
  typealias Encode =
    @convention(c) (OpaquePointer, UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32
  typealias Decode =
    @convention(c) (OpaquePointer?, UnsafeMutablePointer<UnsafePointer<UInt8>?>, Int) -> OpaquePointer?
  typealias Free = @convention(c) (OpaquePointer) -> Void
  /// A callback that frees the data that netopt stored in one of OpenSSL's objects under an index
  /// (CRYPTO_get_ex_new_index(3)).
  typealias FreeData =
    @convention(c) (
      UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, Int32, Int,
      UnsafeMutableRawPointer?
    ) -> Void
  /// CRYPTO_get_ex_new_index(3), which reserves an index under which netopt stores data in OpenSSL's objects.
  typealias NewIndex =
    @convention(c) (Int32, Int, UnsafeMutableRawPointer?, UnsafeRawPointer?, UnsafeRawPointer?, FreeData?)
    -> Int32
  /// SSL_get_finished(3), which returns 0 until the first handshake has sent its Finished message.
  private typealias GetFinished = @convention(c) (OpaquePointer, UnsafeMutableRawPointer?, Int) -> Int

  // The functions. `init` shows which function of OpenSSL each one is.
  let getNewSession: GetNewSession
  let setNewSession: SetNewSession
  private let setInfo: SetInfo
  private let setWatch: SetWatch
  private let getSecurity: GetSecurity
  private let setSecurity: SetSecurity
  private let keyBits: KeyBits
  let getSession: GetSession
  let setSession: SetSession
  let control: Control
  let setOptions: SetOptions
  let newSession: Make
  let setSessionData: SetData
  let getSessionData: GetData
  let encode: Encode
  let decode: Decode
  let free: Free
  private let getFinished: GetFinished

  /// The process's OpenSSL; `nil` when libcurl uses another TLS library, or another major version of OpenSSL
  /// than that of the headers.
  static let loaded: OpenSSL? = isOfHeaders(CurlLibrary.tlsName) ? try? OpenSSL() : nil

  /// Whether a TLS library has the same constants as the headers (`COpenSSL`): it is OpenSSL with the major
  /// version of the headers.
  ///
  /// - Parameter name: the library's name in libcurl's notation, such as "OpenSSL/3.0.15".
  static func isOfHeaders(_ name: String) -> Bool { name.hasPrefix("OpenSSL/\(netopt_openssl_major).") }

  /// Returns the warning that a client lacks some checks because libcurl uses another TLS library.
  static func warning(of name: String) -> NetOptError {
    NetOptError(
      .unsupported, phase: .tls,
      """
      libcurl uses \(name.isEmpty ? "no TLS library" : name), and this netopt was built for OpenSSL \(netopt_openssl_major). netopt does not always notice a \
      truncated response or one that arrives before its request, and resumes TLS sessions less often. Use a libcurl with OpenSSL \(netopt_openssl_major).
      """)
  }

  private init() throws(MissingFunction) {
    // The signatures are those of SSL_CTX_sess_set_new_cb(3), SSL_CTX_set_info_callback(3),
    // SSL_CTX_set_msg_callback(3), SSL_CTX_set_security_callback(3), EVP_PKEY_get_bits(3),
    // SSL_set_session(3), SSL_CTX_ctrl(3), SSL_CTX_set_options(3), SSL_SESSION_new(3),
    // SSL_SESSION_set1_ticket_appdata(3), d2i_SSL_SESSION(3), SSL_SESSION_free(3) and SSL_get_finished(3).
    getNewSession = try Self.function("SSL_CTX_sess_get_new_cb")
    setNewSession = try Self.function("SSL_CTX_sess_set_new_cb")
    setInfo = try Self.function("SSL_CTX_set_info_callback")
    setWatch = try Self.function("SSL_CTX_set_msg_callback")
    getSecurity = try Self.function("SSL_CTX_get_security_callback")
    setSecurity = try Self.function("SSL_CTX_set_security_callback")
    getSession = try Self.function("SSL_get_session")
    setSession = try Self.function("SSL_set_session")
    control = try Self.function("SSL_CTX_ctrl")
    setOptions = try Self.function("SSL_CTX_set_options")
    newSession = try Self.function("SSL_SESSION_new")
    setSessionData = try Self.function("SSL_SESSION_set1_ticket_appdata")
    getSessionData = try Self.function("SSL_SESSION_get0_ticket_appdata")
    encode = try Self.function("i2d_SSL_SESSION")
    decode = try Self.function("d2i_SSL_SESSION")
    free = try Self.function("SSL_SESSION_free")
    getFinished = try Self.function("SSL_get_finished")
    keyBits = try Self.function("EVP_PKEY_get_bits")
  }

  /// The error when the process's OpenSSL lacks a function.
  struct MissingFunction: Error {}

  /// Returns the function with a name, as the type that the context of the call expects. Nothing checks the
  /// type, which must match the man page.
  static func function<Function>(_ name: String) throws(MissingFunction) -> Function {
    // RTLD_DEFAULT, a macro that Swift does not import.
    guard let address = dlsym(UnsafeMutableRawPointer(bitPattern: 0), name) else { throw MissingFunction() }
    return unsafeBitCast(address, to: Function.self)
  }

  // MARK: Contexts

  /// Makes connections keep their record buffers, 34 KiB for each connection. libcurl makes OpenSSL free the
  /// buffers after each record and allocate new ones for the next record. When many requests share a
  /// connection, the allocations cost more than the memory that they save.
  ///
  /// - Parameter context: an `SSL_CTX` that libcurl has set up (CURLOPT_SSL_CTX_FUNCTION(3)).
  func keepBuffers(of context: OpaquePointer) {
    // SSL_CTX_clear_mode(3) is a macro for this.
    _ = control(context, netopt_ctrl_clear_mode, netopt_mode_release_buffers, nil)
  }

  /// Lets libcurl repeat a write from another address, after the socket had no room for it. While a socket is
  /// full, libcurl 7.88 gathers small HTTP/2 frames in a buffer, and moves the buffer when it grows. By default
  /// OpenSSL refuses to repeat a write from another address: the connection fails, and libcurl does not tell all
  /// its transfers.
  ///
  /// - Parameter context: an `SSL_CTX` that libcurl has set up (CURLOPT_SSL_CTX_FUNCTION(3)).
  func acceptMovedWrites(in context: OpaquePointer) {
    // SSL_CTX_set_mode(3) is a macro for this.
    _ = control(context, netopt_ctrl_set_mode, netopt_mode_moving_write_buffer, nil)
  }

  /// Makes connections read only the record that they need. libcurl 8.15.0 and later makes OpenSSL read
  /// several records at once. Then `RecordReader` would not know in which record data arrived, and the gate
  /// would not know whether the bytes that were read are data or tickets.
  ///
  /// - Parameter context: an `SSL_CTX` that libcurl has set up (CURLOPT_SSL_CTX_FUNCTION(3)).
  func readRecordByRecord(in context: OpaquePointer) {
    // SSL_CTX_set_read_ahead(3) is a macro for this.
    _ = control(context, netopt_ctrl_set_read_ahead, 0, nil)
  }

  /// Observes handshakes and alerts (SSL_CTX_set_info_callback(3)). libcurl sets no such callback.
  ///
  /// - Parameter context: an `SSL_CTX` that libcurl has set up (CURLOPT_SSL_CTX_FUNCTION(3)).
  func followHandshakes(of context: OpaquePointer) {
    setInfo(context) { ssl, what, value in
      guard let openSSL = OpenSSL.loaded, let ssl else { return }
      if what == netopt_read_alert, let connection = TLSConnection.record(of: ssl) {
        let (level, alert) = (value >> 8, value & 0xff)
        if alert == netopt_close_notify { connection.hasCloseNotify = true }
        // Alerts of level 2 are fatal (RFC 8446, section 6).
        if level == 2 { connection.alert = alert }
      }
      // After this side's Finished message, each state change has a cost. In TLS 1.3, OpenSSL reads tickets
      // and key updates like messages of a handshake.
      if what == netopt_state_change, openSSL.getFinished(ssl, nil, 0) > 0 {
        RecordReader.of(ssl)?.chargeStateChange()
      }
      // Only for the first handshake. A renegotiation (TLS 1.2) is a handshake too, but its connection must
      // keep its session.
      if what & netopt_handshake_start != 0, openSSL.getFinished(ssl, nil, 0) == 0 {
        openSSL.unpackSession(of: ssl)
        RecordReader.attach(to: ssl)
        ProxyTLS.began(ssl)
      }
      if what & netopt_handshake_done != 0 { PeerCertificate.keep(of: ssl) }
    }
  }

  /// The address of OpenSSL's own security callback (SSL_CTX_set_security_callback(3)); 0 until the first
  /// connection is set up. OpenSSL uses the same callback in every context.
  private static let defaultSecurityCheck = Atomic<UInt>(0)
  /// The largest Diffie-Hellman group that a server may choose, in bits. A handshake with OpenSSL's largest
  /// group, 10,000 bits, blocks the loop, and with it all other calls, for more than half a second.
  static let largestGroup = 4096

  /// Makes connections refuse Diffie-Hellman groups larger than `largestGroup`. This concerns TLS 1.2, where
  /// servers choose any group, and the groups of RFC 7919 that TLS 1.3 would offer. OpenSSL's own callback
  /// decides everything else, as before.
  ///
  /// - Parameter context: an `SSL_CTX` that libcurl has set up (CURLOPT_SSL_CTX_FUNCTION(3)).
  func limitGroups(of context: OpaquePointer) {
    guard let defaultSecurityCheck = getSecurity(context) else { return }
    Self.defaultSecurityCheck.store(
      UInt(bitPattern: unsafeBitCast(defaultSecurityCheck, to: Int.self)), ordering: .releasing)
    setSecurity(context) { ssl, context, operation, bits, kind, other, data in
      if operation == netopt_operation_temporary_group, let other, let count = OpenSSL.loaded?.keyBits(other),
        count > OpenSSL.largestGroup
      {
        return 0
      }
      if operation >> 16 == netopt_operations_of_curves, let other,
        OpenSSL.largeGroups.contains(UInt16(bigEndian: other.loadUnaligned(as: UInt16.self)))
      {
        return 0
      }
      guard
        let original = UnsafeRawPointer(bitPattern: OpenSSL.defaultSecurityCheck.load(ordering: .acquiring))
      else {
        return 0
      }
      // The stored address came from a function of this type.
      return unsafeBitCast(original, to: Security.self)(ssl, context, operation, bits, kind, other, data)
    }
  }

  /// Reports each received record of application data, and each record that is written, to its
  /// `LiveConnection` until `TLSConnection.endWatch`, and checks certificates (`checkCertificates`). Replaces
  /// the callback with which libcurl would show TLS messages.
  ///
  /// - Parameter context: an `SSL_CTX` that libcurl has set up (CURLOPT_SSL_CTX_FUNCTION(3)).
  func watchRecords(of context: OpaquePointer) {
    setWatch(context) { isSent, version, kind, bytes, count, ssl, _ in
      OpenSSL.checkCertificates(isSent, version, kind, bytes, count, ssl)
      if isSent != 0 {
        if kind == netopt_record_header, let ssl { TLSConnection.record(of: ssl)?.beginsRecord() }
        return
      }
      guard kind == netopt_record_header || kind == netopt_record_inner_type, count > 0, let bytes, let ssl,
        bytes.load(as: UInt8.self) == netopt_record_application_data,
        let connection = TLSConnection.record(of: ssl),
        let reader = RecordReader.of(ssl)
      else { return }
      // In TLS 1.3 the header of each record says that the record is data. The real type is inside the record
      // (RFC 8446, section 5.2).
      if kind == netopt_record_header, connection.tlsVersion == "TLSv1.3" { return }
      connection.receivedData(inRecordAt: reader.budget.recordStart)
    }
  }

  /// The groups beyond `largestGroup` that TLS 1.3 knows: ffdhe6144 and ffdhe8192, by number (RFC 7919,
  /// section 2).
  private static let largeGroups: Set<UInt16> = [0x0103, 0x0104]
}

extension OpenSSL {
  /// The error for a setting that needs OpenSSL, when libcurl uses another TLS library.
  static func missing(_ setting: String) -> NetOptError {
    NetOptError(
      .unsupported, phase: .tls,
      "\(setting) needs a libcurl with OpenSSL \(netopt_openssl_major); this one uses \(CurlLibrary.tlsName)")
  }
}
