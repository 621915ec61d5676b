import Synchronization

// Sessions that later connections resume.

extension OpenSSL {
  /// libcurl's own callback for a new session, once it was seen: the same one in every context.
  private static let libcurlsNewSession = Atomic<UInt>(0)
  /// The most that a session in libcurl's cache may have, encoded, in bytes: the server's certificate and a ticket. Usually these have 2 KiB. A client
  /// can keep 8,192 sessions (`SessionCache`, `ConnectionTable`).
  static let largestSession = 8 * 1024

  /// Has connections resume sessions as often as the server allows.
  ///
  /// A session holds the server's whole list of certificates, parsed, which takes up to 30 times its bytes. And libcurl does not shut TLS down when
  /// it closes an HTTP/2 connection, for which OpenSSL marks the connection's session as one that must not be resumed: SSL_set_shutdown(3). So libcurl's
  /// cache gets an empty session around what d2i_SSL_SESSION(3) needs, and a handshake resumes a session that is decoded for it. Encoded, a
  /// session has the server's own certificate, the result of its verification and all that the handshake looks at.
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
      // It was stored as what it is turned into here.
      let keep = unsafeBitCast(original, to: NewSession.self)
      if CurlLibrary.encodesSessions { return keep(ssl, session) }
      guard let packed = openSSL.pack(session, count) else { return 0 }
      if keep(ssl, packed) == 0 { openSSL.free(packed) }
      // OpenSSL's own session stays its own.
      return 0
    }
  }

  /// Puts an encoded session into an empty one, as data of an application (SSL_SESSION_set1_ticket_appdata(3)).
  ///
  /// - Parameter count: how many bytes it has.
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

  /// Has a connection resume the session that is in the one it was given, or none when that cannot be decoded.
  func unpackSession(of ssl: OpaquePointer) {
    var (bytes, count) = (nil as UnsafePointer<UInt8>?, 0)
    guard let packed = getSession(ssl), getSessionData(packed, &bytes, &count) == 1, count > 0 else { return }
    let session = decode(nil, &bytes, count)
    // It takes a reference of its own.
    _ = setSession(ssl, session)
    if let session { free(session) }
  }
}
