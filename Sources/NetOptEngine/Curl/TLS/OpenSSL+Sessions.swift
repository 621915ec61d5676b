import Synchronization

// Stores TLS sessions in a form that later connections can resume.

extension OpenSSL {
  /// The address of libcurl's callback for new sessions (SSL_CTX_sess_set_new_cb(3)); 0 until the first
  /// connection is set up. libcurl uses the same callback in every context.
  private static let libcurlsNewSession = Atomic<UInt>(0)
  /// The maximum length in bytes of an encoded session in libcurl's cache. An encoded session contains the
  /// server's certificate and a ticket, and usually has 2 KiB. A client can keep 8,192 sessions: eight in
  /// each `SessionCache`, for the 1,024 groups of `ConnectionTable`.
  static let largestSession = 8 * 1024

  /// Makes connections resume sessions as often as the server allows.
  ///
  /// OpenSSL's session is not fit for libcurl's cache. It holds the server's whole certificate list in parsed
  /// form, which takes up to 30 times the size of the list. Moreover, libcurl does not shut down TLS when it
  /// closes an HTTP/2 connection. OpenSSL then marks the connection's session as not resumable
  /// (SSL_set_shutdown(3)).
  ///
  /// So netopt encodes each session as bytes (i2d_SSL_SESSION(3)): the server's own certificate, the result
  /// of its verification, and all that a handshake reads. It stores the bytes as application data of a new
  /// session that is otherwise empty (`pack`), and gives this session to libcurl's cache. When a handshake
  /// begins, `unpackSession` decodes the bytes, and the connection resumes the decoded session. A libcurl
  /// that encodes sessions itself (`CurlLibrary.encodesSessions`) gets the original session.
  ///
  /// - Parameter context: an `SSL_CTX` that libcurl has set up (CURLOPT_SSL_CTX_FUNCTION(3)).
  func keepSessions(of context: OpaquePointer) {
    guard let callback = getNewSession(context) else { return }
    Self.libcurlsNewSession.store(
      UInt(bitPattern: unsafeBitCast(callback, to: Int.self)), ordering: .releasing)
    setNewSession(context) { ssl, session in
      let original = UnsafeRawPointer(bitPattern: OpenSSL.libcurlsNewSession.load(ordering: .acquiring))
      guard let openSSL = OpenSSL.loaded, let original, let session else { return 0 }
      let count = Int(openSSL.encode(session, nil))
      guard count > 0, count <= OpenSSL.largestSession else { return 0 }
      // The stored address came from a function of this type.
      let keep = unsafeBitCast(original, to: NewSession.self)
      if CurlLibrary.encodesSessions { return keep(ssl, session) }
      guard let packed = openSSL.pack(session, count) else { return 0 }
      if keep(ssl, packed) == 0 { openSSL.free(packed) }
      // 0 means that OpenSSL's own session still belongs to OpenSSL.
      return 0
    }
  }

  /// Encodes a session, and stores the bytes as application data of a new, otherwise empty session
  /// (SSL_SESSION_set1_ticket_appdata(3)).
  ///
  /// - Parameters:
  ///   - session: the session to encode.
  ///   - count: the length of the encoded session in bytes.
  /// - Returns: the new session, which the caller must free; `nil` without memory.
  private func pack(_ session: OpaquePointer, _ count: Int) -> OpaquePointer? {
    guard let packed = newSession() else { return nil }
    let isPacked = withUnsafeTemporaryAllocation(of: UInt8.self, capacity: count) { bytes in
      var end = bytes.baseAddress
      return encode(session, &end) == count && setSessionData(packed, bytes.baseAddress, count) == 1
    }
    if isPacked { return packed }
    free(packed)
    return nil
  }

  /// Decodes the session that `pack` stored in the session that libcurl gave a connection, and makes the
  /// connection resume the decoded session. If decoding fails, the connection resumes no session.
  func unpackSession(of ssl: OpaquePointer) {
    var (bytes, count) = (nil as UnsafePointer<UInt8>?, 0)
    guard let packed = getSession(ssl), getSessionData(packed, &bytes, &count) == 1, count > 0 else { return }
    let session = decode(nil, &bytes, count)
    // `setSession` takes a reference of its own.
    _ = setSession(ssl, session)
    if let session { free(session) }
  }
}
