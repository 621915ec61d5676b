import Glibc
import NetOptCore
import NetOptEventLoop

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
  /// What TLS adds to a record: an authentication tag, and the type of its content or a nonce.
  var recordOverhead = 17
  /// Whether parts of a request were written since something was read.
  var carriesRequest = false
  /// How many transfers on it have a body to send: flow control has parts of them written whenever something is read.
  var uploads = 0
  /// Whether HTTP/2 answered what was read last with something that may be GOAWAY.
  private var mayHaveSaidGoAway = false
  /// Whether libcurl has closed it.
  fileprivate(set) var isClosed = false
  /// Whether HTTP/2 gave the connection up because of what it read last: it wrote what may be GOAWAY, and libcurl closed the connection.
  var wasGivenUp: Bool { mayHaveSaidGoAway && isClosed }
  private let watch: ReadWatch
  /// Over HTTP/1.1 the transfer that it carries, or carried last.
  var carrier: Transfer?
  /// Whether OpenSSL was told to note here how the peer ends TLS.
  var reportsItsEnd = false
  /// Whether the peer has ended TLS in order, with close_notify (RFC 8446, section 6.1).
  var hasCloseNotify = false

  init(_ descriptor: Int32, _ watch: ReadWatch) {
    self.descriptor = descriptor
    self.watch = watch
  }

  /// TLS has read the head of a record.
  func readRecord() {
    carriesRequest = false
    mayHaveSaidGoAway = false
    // libcurl reads as long as something comes, and nothing else happens on the loop meanwhile. Now it reads an end.
    if watch.isTooLong() { shutdown(descriptor, Int32(SHUT_RDWR)) }
  }

  /// TLS has written the head of a record.
  func wroteRecord(ofLength length: Int) {
    // GOAWAY has 17 bytes and most often a reason (RFC 9113, section 6.8). Several frames of 13, WINDOW_UPDATE and RST_STREAM, may share a
    // record.
    let length = length - recordOverhead
    if !carriesRequest, uploads == 0, length >= 17, !length.isMultiple(of: 13) { mayHaveSaidGoAway = true }
  }
}

/// Looks how long libcurl reads in one call.
///
/// Frames of HTTP/2 that belong to no request, or change nothing of one, are read for as long as they come.
final class ReadWatch {
  /// So many records in one call are nothing unusual.
  private static let usual = 1024
  /// The longest that one call may read more than that.
  private static let limit = Duration.milliseconds(250)

  private let now: () -> MonotonicInstant
  private var records = 0
  private var since: MonotonicInstant?

  init(now: @escaping () -> MonotonicInstant) { self.now = now }

  /// libcurl is about to be called.
  func begin() {
    records = 0
    since = nil
  }

  /// A record was read.
  ///
  /// - Returns: whether this goes on for too long.
  func isTooLong() -> Bool {
    records += 1
    guard records >= Self.usual, records.isMultiple(of: 64) else { return false }
    let now = now()
    guard let since else {
      self.since = now
      return false
    }
    return now - since > Self.limit
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
    // FNV-1a: these are few, short, and nobody gains from making two of them collide.
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    func mix(_ byte: UInt64) { hash = (hash ^ byte) &* 0x0000_0100_0000_01b3 }
    for text in [remote, local] {
      guard var byte = text else { continue }
      while byte.pointee != 0 {
        mix(UInt64(UInt8(bitPattern: byte.pointee)))
        byte += 1
      }
      mix(0)
    }
    mix(UInt64(UInt32(bitPattern: remotePort)))
    mix(UInt64(UInt32(bitPattern: localPort)))
    self.hash = hash
    self.localPort = localPort
  }
}

/// The connections that libcurl has open. Kept up to date from within its callbacks: one call of libcurl may close a
/// connection and open another with the same descriptor.
struct LiveConnections {
  let watch: ReadWatch
  private var byDescriptor = DescriptorTable<LiveConnection>()
  private var byEnds: [ConnectionEnds: LiveConnection] = [:]

  init(_ watch: ReadWatch) { self.watch = watch }

  mutating func opened(_ descriptor: Int32) {
    closed(descriptor)
    byDescriptor[descriptor] = LiveConnection(descriptor, watch)
  }

  mutating func closed(_ descriptor: Int32) {
    guard let connection = byDescriptor[descriptor] else { return }
    byDescriptor[descriptor] = nil
    connection.isClosed = true
    if let ends = connection.ends, byEnds[ends] === connection { byEnds[ends] = nil }
  }

  /// The connection on which a transfer came to the gate.
  ///
  /// - Parameter descriptor: the socket that the transfer opened, if it did.
  /// - Returns: `nil` when it is not known: libcurl opened it without saying so.
  mutating func connection(opened descriptor: Int32?, _ ends: ConnectionEnds) -> LiveConnection? {
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
