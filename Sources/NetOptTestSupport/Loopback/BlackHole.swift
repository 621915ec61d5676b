import Glibc
import NetOptCore

/// Makes a listening socket a black hole: fills the accept queue of the socket, from which nobody accepts
/// connections. Linux then drops further SYNs, so a client that connects gets no answer: listen(2),
/// tcp_max_syn_backlog in tcp(7).
enum BlackHole {
  /// Opens connections to the socket until one gets no answer within 20 ms.
  ///
  /// - Parameter endpoint: the endpoint that the socket listens on.
  /// - Returns: the descriptors of the connections that fill the queue. They must stay open.
  /// - Throws: `TestSupportError` when all of 16 connections are established, so that the queue is not full.
  static func fill(_ endpoint: IPEndpoint) throws -> [Int32] {
    var held: [Int32] = []
    for _ in 0..<16 {
      let descriptor = try LoopbackSocket.connecting(to: endpoint)
      var descriptors = [pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)]
      // On loopback, the handshake is complete when connect(2) returns. The first retransmission of a SYN
      // comes after 1 s.
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
