public import NetOptCore
import Synchronization

extension IPAddress {
  /// 127.0.0.1.
  public static let loopback = IPAddress(v4: 0x7f00_0001)

  private static let nextLoopback = Atomic<UInt32>(0)

  /// Addresses of 127.0.0.0/8 that nobody else in this process was given. All of the block leads to this machine on
  /// Linux; with addresses of its own a test cannot meet the servers of another one.
  public static func freshLoopback(_ count: Int) -> [IPAddress] {
    (0..<count).map { _ in
      // 127.1.0.1 and up, without the bytes 0 and 255 at the end.
      let number = nextLoopback.wrappingAdd(1, ordering: .relaxed).oldValue
      return IPAddress(v4: 0x7f01_0000 + ((number / 254) << 8) + number % 254 + 1)
    }
  }
}
