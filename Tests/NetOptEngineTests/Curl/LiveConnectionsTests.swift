import Glibc
import NetOptCore
import NetOptTestSupport
import Testing

@testable import NetOptEngine

/// How `LiveConnections` finds the connection on which a transfer has reached the gate.
@Suite struct LiveConnectionsTests {
  /// A socket with a local port that no other socket has. It is a UDP socket, so that it needs no peer.
  private struct Socket {
    let descriptor: Int32
    /// The ends of the connection that the test assumes on the socket. The peer is made up.
    let ends: ConnectionEnds
    /// The connection that the first search for these ends found; `nil` before.
    var connection: LiveConnection?

    init() throws {
      descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
      var length = socklen_t(MemoryLayout<sockaddr_in>.size)
      let descriptor = descriptor
      let isBound = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
        }
      }
      try #require(isBound)
      let port = Int32(UInt16(bigEndian: address.sin_port))
      ends = ConnectionEnds(remote: "192.0.2.1", remotePort: 443, local: "127.0.0.1", localPort: port)
    }
  }

  @Test(
    "a connection is found by its two ends while it is open, and never after",
    arguments: 1...20 as ClosedRange<UInt64>
  )
  func found(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    var live = LiveConnections()
    var open: [Socket] = []
    // The ends of closed connections. No open connection has one of these pairs of ends.
    var gone: [ConnectionEnds] = []
    defer { for socket in open { close(socket.descriptor) } }
    for _ in 0..<500 {
      let index = open.isEmpty ? 0 : Int(random.below(UInt64(open.count)))
      switch random.below(8) {
      case 0 where open.count < 6:
        let socket = try Socket()
        gone.removeAll { $0 == socket.ends }
        live.opened(socket.descriptor)
        open.append(socket)
      case 1 where !open.isEmpty:
        let socket = open.remove(at: index)
        live.closed(socket.descriptor)
        close(socket.descriptor)
        gone.append(socket.ends)
      case 2 where !gone.isEmpty:
        let found = live.connection(opened: nil, gone[Int(random.below(UInt64(gone.count)))])
        #expect(found == nil)
      case 3...7 where !open.isEmpty:
        // A transfer that opened the socket knows its descriptor. Other transfers know only the ends.
        let descriptor = random.below(2) == 0 ? open[index].descriptor : nil
        let found = live.connection(opened: descriptor, open[index].ends)
        #expect(found?.descriptor == open[index].descriptor)
        if let known = open[index].connection { #expect(found === known) }
        open[index].connection = found
      default: break
      }
    }
  }
}
