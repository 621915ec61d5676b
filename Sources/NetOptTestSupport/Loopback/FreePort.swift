import Glibc
public import NetOptCore
import Synchronization

/// Finds ports without a listener.
public enum FreePort {
  /// The ports to check. They are below the ports that Linux gives to outgoing connections
  /// (ip_local_port_range in ip(7)), so that no outgoing connection takes a port between the check and the
  /// use.
  private static let range: Range<UInt32> = 12_000..<32_000

  /// A counter that grows by 1 for each port that is checked. Modulo the size of the range, it is the offset
  /// in `range` of the next port to check. It starts at a number that depends on the process id, so that
  /// concurrent test processes seldom check the same port.
  private static let next = Atomic<UInt32>(UInt32(truncatingIfNeeded: getpid()) &* 769)

  /// Returns a port that is free for TCP and UDP on all of the addresses. The function returns no port twice
  /// in a process until it has checked the whole range, so servers that start one after another have
  /// different ports.
  ///
  /// - Throws: `TestSupportError` when an address does not belong to this machine, or when no port is free.
  public static func find(on addresses: [IPAddress]) throws -> UInt16 {
    for _ in range {
      let number = next.wrappingAdd(1, ordering: .relaxed).oldValue
      let port = UInt16(range.lowerBound + number % UInt32(range.count))
      if addresses.allSatisfy({ LoopbackSocket.isFree(IPEndpoint($0, port: port)) }) { return port }
    }
    throw TestSupportError("no port is free on \(addresses.map(\.description).joined(separator: ", "))")
  }
}
