import Glibc
public import NetOptCore
import Synchronization

/// Ports that nobody listens on.
public enum FreePort {
  /// Below the range from which Linux takes the ports of outgoing connections (ip_local_port_range in ip(7)), so
  /// that none of them takes a port between the look and the use.
  private static let range: Range<UInt32> = 12_000..<32_000

  /// Starts at another place in each process, so that test processes side by side seldom look at the same port.
  private static let next = Atomic<UInt32>(UInt32(truncatingIfNeeded: getpid()) &* 769)

  /// A port that is free for TCP and UDP on all of the addresses. It is given out once in a process, so servers
  /// that are started after one another do not get the same.
  ///
  /// - Throws: `TestSupportError` when an address is none of this machine, or every port is taken.
  public static func find(on addresses: [IPAddress]) throws -> UInt16 {
    for _ in range {
      let number = next.wrappingAdd(1, ordering: .relaxed).oldValue
      let port = UInt16(range.lowerBound + number % UInt32(range.count))
      if addresses.allSatisfy({ LoopbackSocket.isFree(IPEndpoint($0, port: port)) }) { return port }
    }
    throw TestSupportError("no port is free on \(addresses.map(\.description).joined(separator: ", "))")
  }
}
