import Glibc
import NetOptCore

/// The TLS connections that became ready less than a second ago and have carried no request, such as the
/// connections of legs that lost a race.
///
/// libcurl 7.88 takes a pooled connection for dead when bytes have arrived on it but contain no data that
/// libcurl can read. A new connection is in this state between the server's session tickets (RFC 8446,
/// section 4.6.1) and its first HTTP/2 frame, which both arrive right after the handshake. A request sent in
/// this moment would cost another handshake. `NewConnections` therefore hides received bytes on these sockets
/// (`SO_RCVLOWAT`, socket(7)) until there are many of them, a request is sent, or the second is over.
///
/// If the other side closes the connection after its session tickets, netopt does not notice this. The same
/// is true without `NewConnections`: libcurl takes the connection for alive, and repeats a request that may
/// be repeated.
///
/// Confined to the loop's thread.
struct NewConnections {
  private struct Connection {
    let descriptor: Int32
    let localPort: Int32
    /// When the socket shows its bytes again.
    let until: MonotonicInstant
  }

  /// A socket hides received bytes until it has this many (SO_RCVLOWAT). A server sends fewer bytes before
  /// the first request, and a receive buffer has room for more.
  private static let hidden: Int32 = 16_384
  /// How long after a connection is ready its socket hides received bytes.
  private static let hidingTime = Duration.seconds(1)

  /// The connections, oldest first.
  private var connections: [Connection] = []

  /// Whether no connection hides its bytes, which is the usual case.
  var isEmpty: Bool { connections.isEmpty }

  /// When the first second of the oldest connection ends; `nil` if there is no connection.
  var due: MonotonicInstant? { connections.first?.until }

  /// Adds a connection that has just become ready and carries no request, and hides its received bytes.
  mutating func add(_ descriptor: Int32, localPort: Int32, at now: MonotonicInstant) {
    guard Self.set(Self.hidden, on: descriptor) else { return }
    connections.append(Connection(descriptor: descriptor, localPort: localPort, until: now + Self.hidingTime))
  }

  /// Shows the bytes of the connections with a local port again. A request is about to be sent from this
  /// port, and the loop must see its response.
  mutating func used(_ localPort: Int32) {
    // Connections with different local addresses may have the same port. It does no harm to show the bytes of
    // all of them.
    connections.removeAll { connection in
      guard connection.localPort == localPort else { return false }
      _ = Self.set(1, on: connection.descriptor)
      return true
    }
  }

  /// Removes a socket that is being closed.
  mutating func closed(_ descriptor: Int32) { connections.removeAll { $0.descriptor == descriptor } }

  /// Shows the bytes of the connections whose second is over.
  mutating func settle(at now: MonotonicInstant) {
    while let first = connections.first, first.until <= now {
      connections.removeFirst()
      _ = Self.set(1, on: first.descriptor)
    }
  }

  /// Sets the number of received bytes from which on a socket counts as readable (SO_RCVLOWAT).
  ///
  /// - Returns: whether this succeeded.
  private static func set(_ bytes: Int32, on descriptor: Int32) -> Bool {
    var bytes = bytes
    return setsockopt(descriptor, SOL_SOCKET, SO_RCVLOWAT, &bytes, socklen_t(MemoryLayout<Int32>.size)) == 0
  }
}
