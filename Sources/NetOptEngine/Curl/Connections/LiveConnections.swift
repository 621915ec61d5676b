import CCurl
import Glibc
import NetOptCore
import NetOptLocking

/// An open connection, with the state that the gate and the end of a response need. Confined to the loop's
/// thread.
final class LiveConnection {
  /// The connection's socket.
  let descriptor: Int32
  /// Both ends of the connection, set when a transfer reaches the gate on it.
  fileprivate var ends: ConnectionEnds?
  /// Whether the connection negotiated HTTP/2, or a response on it came in HTTP/2.
  var isMultiplexed = false
  /// Whether a request was sent on the connection.
  var hasCarried = false
  /// The bundle of the connection, set with the first request.
  var bundle: UInt32?
  /// Whether data followed a response, or the end of a response is uncertain. The next data may belong to
  /// that response.
  var isTainted = false
  /// How long a connection rests after a response that has no body but announces one, in case the server
  /// sends that body.
  static let quietTime = Duration.milliseconds(100)
  /// When the rest of `quietTime` ends.
  var quietUntil: MonotonicInstant?
  /// The number of bytes that had arrived on the socket when the last HTTP/1.1 request was sent. 0 before the
  /// first request, and without OpenSSL.
  private var receivedAtRequest = 0
  /// Whether data that arrived before the present request was taken for a part of its response.
  private(set) var hasUnsolicitedData = false
  /// Whether the socket had unread data when the gate last looked.
  var hasUnreadBytes = false
  /// The TLS version of the connection, if it is known.
  var tlsVersion: String?
  /// The TLS connection to the proxy, when plain HTTP goes through one over TLS.
  var proxyTLS: ProxyTLS?
  /// Limits how much libcurl reads from the connection; set if the connection speaks HTTP/2 over OpenSSL.
  var reader: RecordReader?
  /// The nghttp2 session of the connection, set when a request is sent. Only for comparison.
  private(set) var session: UnsafeRawPointer?
  /// The last stream that the server may process, set when the server announces the end of the connection
  /// (GOAWAY; RFC 9113, section 6.8).
  private(set) var lastStream: Int32?
  /// When data of a response last arrived on the connection.
  var lastAnswered: MonotonicInstant?
  /// Whether requests on the connection were given up because the server fell silent.
  var isSilent = false
  /// Whether this side ended the connection.
  private(set) var isEnded = false
  /// Why nghttp2 gave up the connection; `nil` if it did not.
  private(set) var fault: HTTP2Fault?
  /// The transfer that the HTTP/1.1 connection carries, or carried last.
  var carrier: Transfer?
  /// Whether OpenSSL reports to this object how the peer ends TLS.
  var reportsTLSEnd = false
  /// Whether the peer ended TLS properly, with close_notify (RFC 8446, section 6.1).
  var hasCloseNotify = false

  init(_ descriptor: Int32) { self.descriptor = descriptor }

  deinit { removeSession() }

  /// Whether this side has decided to send no more requests on the connection.
  var isGivenUp: Bool { isSilent || isEnded }

  /// Ends the connection, whether or not it carries a request. libcurl reads the end in a later turn. Before
  /// that, libcurl may give the connection to a request, and the gate then refuses it.
  func end() {
    isEnded = true
    netopt_shutdown(descriptor)
  }

  /// Records that a request is sent over HTTP/1.1.
  ///
  /// - Parameter reader: the reader of the connection's TLS, if it has TLS.
  func noteRequestSent(_ reader: RecordReader?) {
    guard let reader else { return }
    receivedAtRequest = reader.received(hasUnreadBytes ? Int(netopt_unread_bytes(descriptor)) : 0)
  }

  /// Records that data arrived over TLS.
  ///
  /// - Parameter start: where on the socket the TLS record began, in bytes. A record that began before the
  ///   request was sent is no part of its response, even if the end of the record came later (RFC 9112,
  ///   section 9.2).
  func receivedData(inRecordAt start: Int) {
    if start < receivedAtRequest { hasUnsolicitedData = true }
  }

  /// Records that a request is sent in a session of nghttp2.
  func setSession(_ session: UnsafeRawPointer) {
    guard session != self.session else { return }
    removeSession()
    self.session = session
    Self.bySession.withLock { $0[UInt(bitPattern: session)] = Reference(self) }
  }

  /// Records that the connection's session is gone.
  func removeSession() {
    guard let session else { return }
    self.session = nil
    Self.bySession.withLock { connections in
      let key = UInt(bitPattern: session)
      // Another connection's session may have this address by now.
      if connections[key]?.identity == ObjectIdentifier(self) { connections[key] = nil }
    }
  }

  /// Records that the server announced the end of the connection. The server may repeat the announcement with
  /// a lower stream.
  func noteGoAway(lastStream stream: Int32) { lastStream = min(stream, lastStream ?? stream) }

  /// Records that nghttp2 gave up the connection, because received frames break a rule or a limit. Only the
  /// first cause counts, since later ones follow from it.
  func wasRejected(_ cause: HTTP2Fault.Cause) {
    fault =
      fault ?? HTTP2Fault(cause: cause, isOfConnection: true, isOfOneStream: reader?.budget.streams == 1)
  }

  // MARK: Sessions

  /// Unchecked sendable: only the session's thread looks up the connection, and the connection ends on the
  /// same thread. Until then the connection is in the table, so the reference need not be weak. With a weak
  /// reference, each retain of the connection would take the slow path.
  private struct Reference: @unchecked Sendable {
    unowned let connection: LiveConnection
    let identity: ObjectIdentifier

    init(_ connection: LiveConnection) {
      self.connection = connection
      identity = ObjectIdentifier(connection)
    }
  }

  /// The connections that carry sessions, of all threads. The key is the address of the session. A later
  /// session may have the same address.
  private static let bySession = Locked<[UInt: Reference]>([:])

  /// Returns the connection that carries a session of this thread.
  static func withSession(_ session: UnsafeRawPointer) -> LiveConnection? {
    bySession.withLock { $0[UInt(bitPattern: session)] }?.connection
  }
}

/// The two ends of a connection as one number: a hash of the addresses and ports, which libcurl gives as
/// text.
struct ConnectionEnds: Hashable {
  private let hash: UInt64
  let localPort: Int32

  /// - Parameters:
  ///   - remote: the numeric address of the other side, `nil` when libcurl does not give it.
  ///   - local: the numeric address of this side.
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
  private var byEnds: [ConnectionEnds: LiveConnection] = [:]
  /// The connection that was found last. Many requests in a row use the same connection.
  private var latest: LiveConnection?

  /// The connection of a socket.
  subscript(descriptor: Int32) -> LiveConnection? { byDescriptor[descriptor] }

  /// The connections that have reached the gate at least once.
  var ready: [LiveConnection] { byDescriptor.values.filter { $0.ends != nil } }

  mutating func opened(_ descriptor: Int32) {
    closed(descriptor)
    byDescriptor[descriptor] = LiveConnection(descriptor)
  }

  mutating func closed(_ descriptor: Int32) {
    guard let connection = byDescriptor[descriptor] else { return }
    byDescriptor[descriptor] = nil
    if latest === connection { latest = nil }
    if let ends = connection.ends, byEnds[ends] === connection { byEnds[ends] = nil }
  }

  /// Returns the connection on which a transfer reached the gate.
  ///
  /// - Parameter descriptor: the socket that the transfer opened; `nil` if it opened none.
  /// - Returns: `nil` when the connection is unknown, because libcurl opened it without reporting this.
  mutating func connection(opened descriptor: Int32?, _ ends: ConnectionEnds) -> LiveConnection? {
    if descriptor == nil, let latest, latest.ends == ends { return latest }
    let found = find(opened: descriptor, ends)
    latest = found
    return found
  }

  private mutating func find(opened descriptor: Int32?, _ ends: ConnectionEnds) -> LiveConnection? {
    let own = descriptor.flatMap { byDescriptor[$0] }
    if let own, own.ends == ends { return own }
    if let own, isUnnamed(own, at: ends) { return name(own, ends) }
    if let known = byEnds[ends] { return known }
    // The transfer that opened the socket may have ended before it reached the gate.
    return byDescriptor.values.first { isUnnamed($0, at: ends) }.map { name($0, ends) }
  }

  private func isUnnamed(_ connection: LiveConnection, at ends: ConnectionEnds) -> Bool {
    connection.ends == nil && port(of: connection.descriptor) == ends.localPort
  }

  private mutating func name(_ connection: LiveConnection, _ ends: ConnectionEnds) -> LiveConnection {
    connection.ends = ends
    byEnds[ends] = connection
    return connection
  }

  /// Returns the local port of a socket (getsockname(2)).
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
