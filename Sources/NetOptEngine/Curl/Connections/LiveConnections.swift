import CCurl
import Glibc
import NetOptCore
import NetOptLocking

/// An open connection, with the state by which the gate and the end of a response decide. Confined to the
/// loop's thread.
final class LiveConnection {
  /// The connection's socket.
  let descriptor: Int32
  /// Both ends of the connection, set when a transfer first reaches the gate on it; `nil` before.
  fileprivate var ends: ConnectionEnds?
  /// Whether the connection negotiated HTTP/2, or a response on it came in HTTP/2.
  var isMultiplexed = false
  /// Whether a request was sent on the connection.
  var hasCarried = false
  /// The number of the bundle that the connection belongs to (`ConnectionClass.bundle`), set when the first
  /// request is sent on it; `nil` before.
  var bundle: UInt32?
  /// Whether the next data on this HTTP/1.1 connection may belong to something else than the response to the
  /// next request, for example because data followed a response or the end of a response is uncertain. The
  /// gate then refuses the connection.
  var isTainted = false
  /// How long an HTTP/1.1 connection is not used after the head of a response that has no body but announces
  /// one. If the server sends that body after all, the body arrives in this time.
  static let quietTime = Duration.milliseconds(100)
  /// The gate refuses the connection until this moment, because a response announced a body that it does not
  /// have (`quietTime`). `nil` if there was no such response.
  var quietUntil: MonotonicInstant?
  /// The total number of bytes received on the socket, at the moment when the last HTTP/1.1 request was sent.
  /// Includes bytes that libcurl had not read by then. 0 before the first request, without TLS, and where
  /// netopt cannot use OpenSSL's functions.
  private var receivedAtRequest = 0
  /// How many TLS records OpenSSL has begun to write since the last HTTP/1.1 request passed the gate.
  private var recordsOfRequest = 0
  /// Whether libcurl has received TLS data that began to arrive before the last HTTP/1.1 request was sent.
  /// Such data is no part of the response to that request. Never becomes false again.
  private(set) var hasUnsolicitedData = false
  /// Whether the socket had unread bytes when the gate last checked an HTTP/1.1 connection for arrived data.
  var hasUnreadBytes = false
  /// The TLS version of the connection, such as "TLSv1.3"; `nil` if it is unknown or the connection has no
  /// TLS.
  var tlsVersion: String?
  /// The TLS connection to the proxy, if the connection carries plain HTTP to a proxy over TLS; otherwise
  /// `nil`.
  var proxyTLS: ProxyTLS?
  /// The reader of the TLS connection that carries the requests; `nil` without TLS, and where netopt cannot
  /// use OpenSSL's functions.
  var tlsReader: RecordReader?
  /// Limits how much libcurl reads from the connection in a turn. Set only if the connection speaks HTTP/2
  /// over OpenSSL.
  var reader: RecordReader?
  /// Whether nghttp2 keeps frames of the connection until the socket has room (SocketRoom.c).
  var holdsFrames = false
  /// The address of the connection's nghttp2 session, set when a request is about to be written. Only for
  /// comparison; it must not be dereferenced.
  private(set) var session: UnsafeRawPointer?
  /// The number of the last stream that the server may process. Set when the server announces the end of the
  /// connection (GOAWAY; RFC 9113, section 6.8); `nil` before.
  private(set) var lastStream: Int32?
  /// When data of a response last arrived on the connection, on the clock of the loop; `nil` if none has.
  /// Recorded once per turn of the loop for each response.
  var lastAnswered: MonotonicInstant?
  /// Whether netopt gave the connection up because nothing arrived on it while requests waited for responses.
  /// No new request uses the connection. Requests that must not be sent again may go on waiting on it.
  var isSilent = false
  /// Whether netopt ended the connection (`end`).
  private(set) var isEnded = false
  /// Why nghttp2 gave up the connection; `nil` if it did not.
  private(set) var fault: HTTP2Fault?
  /// The transfer whose request the HTTP/1.1 connection carries. It is set until netopt detaches the transfer
  /// (`Transfer.leaveConnection`), which may be after libcurl has detached it.
  var carrier: Transfer?
  /// Whether OpenSSL reports to this object how the peer ends TLS, so that `hasCloseNotify` is valid.
  var reportsTLSEnd = false
  /// Whether the peer ended TLS properly, with close_notify (RFC 8446, section 6.1).
  var hasCloseNotify = false
  /// The number of the fatal alert by which the peer ended TLS (RFC 8446, section 6.2); `nil` if it sent
  /// none.
  var alert: Int32?

  /// The alert by which the peer refused the client's certificate, or its lack, on a connection without any
  /// response; `nil` if it did not. If a server also resets the connection, a request cannot be written.
  /// libcurl then does not read the alert, but the gate finds it when libcurl offers the connection again.
  var certificateAlert: String? {
    lastAnswered == nil ? alert.flatMap { CurlErrorText.clientCertificateAlert($0) } : nil
  }

  init(_ descriptor: Int32) { self.descriptor = descriptor }

  deinit { removeSession() }

  /// Whether netopt has decided to send no more requests on the connection.
  var isGivenUp: Bool { isSilent || isEnded }

  /// Shuts the socket down, whether or not the connection carries a request. libcurl notices the end in a
  /// later turn of the loop. Until then libcurl may give the connection to another request, but the gate
  /// refuses the connection.
  func end() {
    isEnded = true
    netopt_shutdown(descriptor)
  }

  /// Records that an HTTP/1.1 request is about to be sent.
  ///
  /// - Parameter reader: the reader of the connection's TLS; `nil` without TLS.
  func noteRequestSent(_ reader: RecordReader?) {
    recordsOfRequest = 0
    guard let reader else { return }
    receivedAtRequest = reader.received(hasUnreadBytes ? Int(netopt_unread_bytes(descriptor)) : 0)
  }

  /// Records that OpenSSL begins to write a TLS record. The socket has taken the record before it, so the
  /// server may read the beginning of the request. libcurl does not report this yet: libcurl 8.7.0 and later
  /// passes the head and up to 64 KiB of the body to one call of SSL_write(3), which reports nothing until
  /// all records are written.
  func beginsRecord() {
    recordsOfRequest += 1
    if recordsOfRequest == 2 { carrier?.sent.wasWritten() }
  }

  /// Records that libcurl received data over TLS.
  ///
  /// - Parameter start: the number of bytes that arrived on the socket before the TLS record with the data. A
  ///   record that began to arrive before the request was sent is no part of its response, even if its end
  ///   came later (RFC 9112, section 9.2).
  func receivedData(inRecordAt start: Int) {
    if start < receivedAtRequest { hasUnsolicitedData = true }
  }

  /// Records the nghttp2 session in which a request is about to be written.
  func setSession(_ session: UnsafeRawPointer) {
    guard session != self.session else { return }
    removeSession()
    self.session = session
    Self.bySession.withLock { $0[UInt(bitPattern: session)] = Reference(self) }
  }

  /// Forgets the connection's session, because it is about to be freed.
  func removeSession() {
    guard let session else { return }
    self.session = nil
    Self.bySession.withLock { connections in
      let key = UInt(bitPattern: session)
      // A later session of another connection may have the same address.
      if connections[key]?.identity == ObjectIdentifier(self) { connections[key] = nil }
    }
  }

  /// Records that the server announced the end of the connection (GOAWAY). The server may repeat the
  /// announcement with a lower stream number.
  func noteGoAway(lastStream stream: Int32) { lastStream = min(stream, lastStream ?? stream) }

  /// Records that nghttp2 gave up the connection, because received frames break a rule or a limit. Only the
  /// first cause counts, since later ones follow from it.
  func wasRejected(_ cause: HTTP2Fault.Cause) {
    fault =
      fault ?? HTTP2Fault(cause: cause, isOfConnection: true, isOfOneStream: reader?.budget.streams == 1)
  }

  // MARK: Sessions

  /// An unretained reference to a connection.
  ///
  /// Unchecked sendable: only the session's thread looks up the connection, and releases it on the same
  /// thread. The connection removes its reference in `deinit`, so the reference need not be weak. A weak
  /// reference would make each retain of the connection slow.
  private struct Reference: @unchecked Sendable {
    unowned let connection: LiveConnection
    let identity: ObjectIdentifier

    init(_ connection: LiveConnection) {
      self.connection = connection
      identity = ObjectIdentifier(connection)
    }
  }

  /// The connections with sessions, of all loops in the process. The key is the address of the session. A
  /// later session may have the same address.
  private static let bySession = Locked<[UInt: Reference]>([:])

  /// Returns the connection with a session of this thread; `nil` if it is unknown.
  static func withSession(_ session: UnsafeRawPointer) -> LiveConnection? {
    bySession.withLock { $0[UInt(bitPattern: session)] }?.connection
  }
}

/// Identifies a connection by its two ends: a hash of both addresses, which libcurl gives as text, and both
/// ports.
struct ConnectionEnds: Hashable {
  private let hash: UInt64
  let localPort: Int32

  /// Makes the identity of a connection.
  ///
  /// - Parameters:
  ///   - remote: the peer's IP address as text; `nil` if libcurl does not give it.
  ///   - local: this machine's IP address as text; `nil` if libcurl does not give it.
  init(remote: UnsafePointer<CChar>?, remotePort: Int32, local: UnsafePointer<CChar>?, localPort: Int32) {
    // Like FNV-1a, but eight bytes at a time: there are few inputs, they are short, and nobody gains from a
    // collision.
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    func mix(_ word: UInt64) {
      hash = (hash ^ word) &* 0x9e37_79b9_7f4a_7c15
      hash ^= hash >> 29
    }
    func mix(_ text: UnsafePointer<CChar>?) {
      guard let text else { return mix(0) }
      let bytes = UnsafeRawBufferPointer(start: text, count: strlen(text))
      var offset = 0
      while offset + 8 <= bytes.count {
        mix(bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        offset += 8
      }
      var rest = UInt64(bytes.count)
      while offset < bytes.count {
        rest = rest << 8 | UInt64(bytes[offset])
        offset += 1
      }
      mix(rest)
    }
    mix(remote)
    mix(local)
    mix(UInt64(UInt32(bitPattern: remotePort)) << 32 | UInt64(UInt32(bitPattern: localPort)))
    self.hash = hash
    self.localPort = localPort
  }
}

/// The connections that libcurl has open. libcurl's callbacks update this table, because one call of libcurl
/// may close a connection and open another one with the same descriptor.
struct LiveConnections {
  private var byDescriptor = DescriptorTable<LiveConnection>()
  /// The connections on which a transfer has reached the gate at least once.
  private var byEnds: [ConnectionEnds: LiveConnection] = [:]
  /// The connection that `connection(opened:_:)` last found. Many requests in a row use the same connection.
  private var latest: LiveConnection?

  /// The connection of a socket.
  subscript(descriptor: Int32) -> LiveConnection? { byDescriptor[descriptor] }

  /// The connections on which a transfer has reached the gate at least once.
  var ready: [LiveConnection] { byDescriptor.values.filter { $0.ends != nil } }

  /// Records that libcurl opened a socket.
  mutating func opened(_ descriptor: Int32) {
    closed(descriptor)
    byDescriptor[descriptor] = LiveConnection(descriptor)
  }

  /// Records that libcurl closes a socket.
  mutating func closed(_ descriptor: Int32) {
    guard let connection = byDescriptor[descriptor] else { return }
    byDescriptor[descriptor] = nil
    if latest === connection { latest = nil }
    if let ends = connection.ends, byEnds[ends] === connection { byEnds[ends] = nil }
  }

  /// Returns the connection on which a transfer reached the gate.
  ///
  /// - Parameter descriptor: the socket that the transfer opened; `nil` if it opened none.
  /// - Returns: the connection; `nil` if it is unknown, because libcurl opened it without a report.
  mutating func connection(opened descriptor: Int32?, _ ends: ConnectionEnds) -> LiveConnection? {
    if descriptor == nil, let latest, latest.ends == ends { return latest }
    let found = find(opened: descriptor, ends)
    latest = found
    return found
  }

  /// Finds a connection by the socket that the transfer opened or by its ends, and records its ends.
  private mutating func find(opened descriptor: Int32?, _ ends: ConnectionEnds) -> LiveConnection? {
    let own = descriptor.flatMap { byDescriptor[$0] }
    if let own, own.ends == ends { return own }
    if let own, isUnnamed(own, at: ends) { return name(own, ends) }
    if let known = byEnds[ends] { return known }
    // The transfer that opened the socket may have ended before it reached the gate.
    return byDescriptor.values.first { isUnnamed($0, at: ends) }.map { name($0, ends) }
  }

  /// Whether the ends of a connection are not recorded yet, and its local port is the port in `ends`.
  private func isUnnamed(_ connection: LiveConnection, at ends: ConnectionEnds) -> Bool {
    connection.ends == nil && port(of: connection.descriptor) == ends.localPort
  }

  /// Records the ends of a connection, and returns the connection.
  private mutating func name(_ connection: LiveConnection, _ ends: ConnectionEnds) -> LiveConnection {
    connection.ends = ends
    byEnds[ends] = connection
    return connection
  }

  /// Returns the local port of a socket (getsockname(2)); `nil` if the socket has no address.
  private func port(of descriptor: Int32) -> Int32? {
    var address = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutablePointer(to: &address) { pointer in
      // The addresses of both families have the port at the same place: ip(7), ipv6(7).
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        getsockname(descriptor, $0, &length) == 0 ? 0 : -1
      } == 0
        ? pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
          Int32(UInt16(bigEndian: $0.pointee.sin_port))
        } : nil
    }
  }
}
