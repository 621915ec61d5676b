public import NetOptCore
import Synchronization

extension IPAddress {
  /// 127.0.0.1.
  public static let loopback = IPAddress(v4: 0x7f00_0001)

  /// The number of addresses that `freshLoopback` has returned in this process.
  private static let nextLoopback = Atomic<UInt32>(0)

  /// Returns addresses of 127.0.0.0/8 that no other caller in this process has received. On Linux, all
  /// addresses of this block belong to this machine. A test that uses its own addresses cannot reach the
  /// servers of another test.
  ///
  /// - Parameter count: the number of addresses to return.
  public static func freshLoopback(_ count: Int) -> [IPAddress] {
    (0..<count).map { _ in
      // 127.1.0.1 and up, without the values 0 and 255 of the last byte.
      let number = nextLoopback.wrappingAdd(1, ordering: .relaxed).oldValue
      return IPAddress(v4: 0x7f01_0000 + ((number / 254) << 8) + number % 254 + 1)
    }
  }
}
