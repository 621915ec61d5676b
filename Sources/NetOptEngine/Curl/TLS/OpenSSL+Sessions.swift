import Synchronization

// Stores TLS sessions in a form that later connections can resume.

extension OpenSSL {
  /// The address of libcurl's callback for new sessions (SSL_CTX_sess_set_new_cb(3)); 0 until a connection is
  /// set up. The callback is the same in every context.
  private static let libcurlsNewSession = Atomic<UInt>(0)
  /// The longest encoded session in libcurl's cache, in bytes. It contains the server's certificate and a
  /// ticket, usually 2 KiB. A client can keep 8,192 sessions (`SessionCache`, `ConnectionTable`).
  static let largestSession = 8 * 1024

  /// Makes connections resume sessions as often as the server allows.
  ///
  /// A session holds the server's whole certificate list in parsed form, which takes up to 30 times the size
  /// of the list. Moreover, libcurl does not shut down TLS when it closes an HTTP/2 connection. OpenSSL then
  /// marks the connection's session as not resumable: SSL_set_shutdown(3). So libcurl's cache gets an empty
  /// session that contains the input of d2i_SSL_SESSION(3), and each handshake decodes a session from it and
  /// resumes that session. The encoded session contains the server's own certificate, the result of its
  /// verification, and all that the handshake reads. A libcurl that encodes sessions itself
  /// (`CurlLibrary.encodesSessions`) gets the original session.
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

  /// Puts an encoded session into an empty session, as application data (SSL_SESSION_set1_ticket_appdata(3)).
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

  /// Decodes the session that `pack` put into a connection's present session, and makes the connection resume
  /// the decoded session. Makes it resume none if decoding fails.
  func unpackSession(of ssl: OpaquePointer) {
    var (bytes, count) = (nil as UnsafePointer<UInt8>?, 0)
    guard let packed = getSession(ssl), getSessionData(packed, &bytes, &count) == 1, count > 0 else { return }
    let session = decode(nil, &bytes, count)
    // `setSession` takes a reference of its own.
    _ = setSession(ssl, session)
    if let session { free(session) }
  }
}
