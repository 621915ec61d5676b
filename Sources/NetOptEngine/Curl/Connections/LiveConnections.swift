import CCurl
import Glibc
import NetOptCore
import NetOptLocking

/// An open connection, as far as the gate and the end of a response have to know it. Confined to the loop's thread.
final class LiveConnection {
  /// Its socket.
  let descriptor: Int32
  /// Both ends of it, once a transfer came to the gate on it.
  fileprivate var ends: ConnectionEnds?
  /// Whether HTTP/2 was negotiated on it, or an answer came in HTTP/2.
  var isMultiplexed = false
  /// Whether a request was sent on it.
  var hasCarried = false
  /// Whether something came behind an answer, or it is not sure where the answer ended: what comes next may be the rest.
  var isTainted = false
  /// How long a connection rests after an answer without a body that announces one, in case the server sends that body.
  static let quietTime = Duration.milliseconds(100)
  /// When that rest ends.
  var isQuietFrom: MonotonicInstant?
  /// Over HTTP/1.1 how much had come on its socket when the last request was sent; nothing before the first, and without OpenSSL.
  private var receivedWhenAsked = 0
  /// Whether data that had come before this request was taken for a part of its answer.
  private(set) var hasUnaskedData = false
  /// Whether the socket had something to read when the gate last looked.
  var hasUnreadBytes = false
  /// The version of TLS that it speaks, when that was found out.
  var tlsVersion: String?
  /// The TLS connection to the proxy, when plain HTTP goes through one over TLS.
  var proxyTLS: ProxyTLS?
  /// What limits how much of it is read, when it speaks HTTP/2 over OpenSSL.
  var reader: RecordReader?
  /// nghttp2's session on it, once a request was sent: only to be compared.
  private(set) var session: UnsafeRawPointer?
  /// The last stream that the server may process, once it has announced the connection's end (GOAWAY; RFC 9113, section 6.8).
  private(set) var lastStream: Int32?
  /// When something of an answer last came on it.
  var lastAnswered: MonotonicInstant?
  /// Whether requests on it were given up because the server had gone silent.
  var isSilent = false
  /// Whether it was ended on this side.
  private(set) var isEnded = false
  /// Why nghttp2 gave the connection up, when it did.
  private(set) var fault: HTTP2Fault?
  /// Over HTTP/1.1 the transfer that it carries, or carried last.
  var carrier: Transfer?
  /// Whether OpenSSL was told to note here how the peer ends TLS.
  var reportsItsEnd = false
  /// Whether the peer has ended TLS in order, with close_notify (RFC 8446, section 6.1).
  var hasCloseNotify = false

  init(_ descriptor: Int32) { self.descriptor = descriptor }

  deinit { carriesNothing() }

  /// Whether no request may be sent on it any more, by what this side has decided.
  var isGivenUp: Bool { isSilent || isEnded }

  /// Ends the connection, whether or not it carries anything. libcurl reads the end in a later turn, and may give the connection to a request
  /// before that: the gate refuses it.
  func end() {
    isEnded = true
    netopt_end(descriptor)
  }

  /// A request is sent over HTTP/1.1.
  ///
  /// - Parameter reader: that of its TLS, if it has any.
  func asks(_ reader: RecordReader?) {
    guard let reader else { return }
    receivedWhenAsked = reader.received(hasUnreadBytes ? Int(netopt_unread(descriptor)) : 0)
  }

  /// Data has come over TLS.
  ///
  /// - Parameter start: where on the socket its record began. One that began before the request was sent is no answer to it, also when
  ///   its end came later (RFC 9112, section 9.2).
  func receivedData(inRecordAt start: Int) {
    if start < receivedWhenAsked { hasUnaskedData = true }
  }

  /// A request is sent in a session of nghttp2.
  func carries(_ session: UnsafeRawPointer) {
    guard session != self.session else { return }
    carriesNothing()
    self.session = session
    Self.bySession.withLock { $0[UInt(bitPattern: session)] = Reference(self) }
  }

  /// Its session is gone.
  func carriesNothing() {
    guard let session else { return }
    self.session = nil
    Self.bySession.withLock { connections in
      let key = UInt(bitPattern: session)
      // Another connection's session may have the address by now.
      if connections[key]?.identity == ObjectIdentifier(self) { connections[key] = nil }
    }
  }

  /// The server has announced the connection's end. It may do so again, and then leave out more streams.
  func leaves(after stream: Int32) { lastStream = min(stream, lastStream ?? stream) }

  /// nghttp2 has given the connection up, because what came on it breaks a rule or a limit. What is told later follows from that.
  func wasRejected(_ cause: HTTP2Fault.Cause) {
    fault =
      fault ?? HTTP2Fault(cause: cause, isOfConnection: true, isOfOneStream: reader?.budget.streams == 1)
  }

  // MARK: Sessions

  /// Unchecked sendable: a connection is asked for by its session's thread alone, where it also ends. Until then it is in the table, so that
  /// the reference need not be weak: that would have each retain of the connection take the slow way.
  private struct Reference: @unchecked Sendable {
    unowned let connection: LiveConnection
    let identity: ObjectIdentifier

    init(_ connection: LiveConnection) {
      self.connection = connection
      identity = ObjectIdentifier(connection)
    }
  }

  /// The connections that carry sessions, of all threads. The key is the session's address, which another one may have later.
  private static let bySession = Locked<[UInt: Reference]>([:])

  /// The connection that carries a session of this thread.
  static func carrying(_ session: UnsafeRawPointer) -> LiveConnection? {
    bySession.withLock { $0[UInt(bitPattern: session)] }?.connection
  }
}

/// The two ends of a connection, as one number: addresses and ports, which libcurl gives as text.
struct ConnectionEnds: Hashable {
  private let hash: UInt64
  let localPort: Int32

  /// - Parameters:
  ///   - remote: the numeric address of the other side, `nil` when libcurl does not give it.
  ///   - local: the numeric address of this side.
  init(remote: UnsafePointer<CChar>?, remotePort: Int32, local: UnsafePointer<CChar>?, localPort: Int32) {
    // As FNV-1a, but eight bytes at a time: these are few, short, and nobody gains from making two of them collide.
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    func mix(_ word: UInt64) {
      hash = (hash ^ word) &* 0x9e37_79b9_7f4a_7c15
      hash ^= hash >> 29
    }
    func mix(_ text: UnsafePointer<CChar>?) {
      guard let text else { return mix(0) }
      let bytes = UnsafeRawBufferPointer(start: text, count: strlen(text))
      var place = 0
      while place + 8 <= bytes.count {
        mix(bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self))
        place += 8
      }
      var rest = UInt64(bytes.count)
      while place < bytes.count {
        rest = rest << 8 | UInt64(bytes[place])
        place += 1
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

/// The connections that libcurl has open. Kept up to date from within its callbacks: one call of libcurl may close a
/// connection and open another with the same descriptor.
struct LiveConnections {
  private var byDescriptor = DescriptorTable<LiveConnection>()
  private var byEnds: [ConnectionEnds: LiveConnection] = [:]
  /// The one that was found last: many requests in a row use the same.
  private var latest: LiveConnection?

  /// The connection of a socket.
  subscript(descriptor: Int32) -> LiveConnection? { byDescriptor[descriptor] }

  /// Those that were ready to carry requests once.
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

  /// The connection on which a transfer came to the gate.
  ///
  /// - Parameter descriptor: the socket that the transfer opened, if it did.
  /// - Returns: `nil` when it is not known: libcurl opened it without saying so.
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
    // Whoever opened the socket may have left before it came to the gate.
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

  /// The port on this side of a socket (getsockname(2)).
  private func port(of descriptor: Int32) -> Int32? {
    var address = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutablePointer(to: &address) { pointer in
      // The port is at the same place of both families' addresses: ip(7), ipv6(7).
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        getsockname(descriptor, $0, &length) == 0 ? 0 : -1
      } == 0
        ? pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
          Int32(UInt16(bigEndian: $0.pointee.sin_port))
        } : nil
    }
  }
}
