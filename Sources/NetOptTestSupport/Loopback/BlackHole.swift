import Glibc
import NetOptCore

/// Fills the queue of a listening socket that nobody accepts from. Linux then drops further SYNs, and whoever connects
/// waits: listen(2), tcp_max_syn_backlog in tcp(7).
enum BlackHole {
  /// Connects until a connection hangs.
  ///
  /// - Returns: the connections that fill the queue, which must stay open.
  /// - Throws: `TestSupportError` when connections keep coming about.
  static func fill(_ endpoint: IPEndpoint) throws -> [Int32] {
    var held: [Int32] = []
    for _ in 0..<16 {
      let descriptor = try LoopbackSocket.connecting(to: endpoint)
      var descriptors = [pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)]
      // On loopback a handshake is over when connect(2) returns; the first retransmission of a SYN comes after 1 s.
      let connected = LoopbackSocket.wait(&descriptors, limit: .milliseconds(20)) > 0
      if !connected {
        close(descriptor)
        return held
      }
      held.append(descriptor)
    }
    held.forEach { close($0) }
    throw TestSupportError("connections to \(endpoint) come about although its queue is full")
  }
}
