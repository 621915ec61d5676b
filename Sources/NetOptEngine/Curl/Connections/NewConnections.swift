import Glibc
import NetOptCore

/// The TLS connections that were opened ahead of requests, in the first second of their lives.
///
/// libcurl 7.88 takes a pooled connection for dead when something has come on it of which it can read no data. So it is in the
/// moment between a server's session tickets (RFC 8446, section 4.6.1) and its first frame of HTTP/2, both of which come right
/// after the handshake: a request that is sent then would cost another handshake. What has come on these sockets is therefore kept
/// from being seen until there is much of it (`SO_RCVLOWAT`, socket(7)), or a request is sent, or the second is over. That the
/// other side has closed the connection is not seen behind session tickets, then as without this: libcurl takes it for alive, and sends
/// a request again that may be repeated.
///
/// Confined to the loop's thread.
struct NewConnections {
  private struct Connection {
    let descriptor: Int32
    let localPort: Int32
    let until: MonotonicInstant
  }

  /// More than a server says before it is asked, and less than a receive buffer holds.
  private static let hidden: Int32 = 16_384
  private static let youth = Duration.seconds(1)

  /// The oldest first.
  private var connections: [Connection] = []

  /// Whether there are none, as nearly always.
  var isEmpty: Bool { connections.isEmpty }

  /// When the oldest has had its second.
  var due: MonotonicInstant? { connections.first?.until }

  /// A connection is ready, and no request is sent on it.
  mutating func add(_ descriptor: Int32, localPort: Int32, at now: MonotonicInstant) {
    guard Self.set(Self.hidden, on: descriptor) else { return }
    connections.append(Connection(descriptor: descriptor, localPort: localPort, until: now + Self.youth))
  }

  /// A request is about to be sent from a port: its answer is waited for.
  mutating func used(_ localPort: Int32) {
    // Ports of several addresses may be equal, which is none the worse for it.
    connections.removeAll { connection in
      guard connection.localPort == localPort else { return false }
      _ = Self.set(1, on: connection.descriptor)
      return true
    }
  }

  /// A socket is being closed.
  mutating func closed(_ descriptor: Int32) { connections.removeAll { $0.descriptor == descriptor } }

  /// Time has passed.
  mutating func settle(at now: MonotonicInstant) {
    while let first = connections.first, first.until <= now {
      connections.removeFirst()
      _ = Self.set(1, on: first.descriptor)
    }
  }

  private static func set(_ bytes: Int32, on descriptor: Int32) -> Bool {
    var bytes = bytes
    return setsockopt(descriptor, SOL_SOCKET, SO_RCVLOWAT, &bytes, socklen_t(MemoryLayout<Int32>.size)) == 0
  }
}
