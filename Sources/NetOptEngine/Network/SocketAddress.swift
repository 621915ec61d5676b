// The comment at the top of SourceAddress.swift says why this file imports CNetwork.
import CNetwork
import Glibc
package import NetOptCore

/// Conversions between addresses and the `sockaddr` structures of the socket calls (ip(7), ipv6(7)).
package enum SocketAddress {
  /// Connects a socket: connect(2).
  ///
  /// - Returns: 0 on success. -1 on failure, with the reason in errno(3).
  static func connect(_ descriptor: Int32, to endpoint: IPEndpoint) -> Int32 {
    let bytes = endpoint.address.bytes
    switch endpoint.address.family {
    case .v4:
      var v4 = sockaddr_in()
      v4.sin_family = sa_family_t(AF_INET)
      v4.sin_port = endpoint.port.bigEndian
      withUnsafeMutableBytes(of: &v4.sin_addr) { $0.copyBytes(from: bytes) }
      return withUnsafeBytes(of: &v4) { connect(descriptor, $0) }
    case .v6:
      var v6 = sockaddr_in6()
      v6.sin6_family = sa_family_t(AF_INET6)
      v6.sin6_port = endpoint.port.bigEndian
      withUnsafeMutableBytes(of: &v6.sin6_addr) { $0.copyBytes(from: bytes) }
      return withUnsafeBytes(of: &v6) { connect(descriptor, $0) }
    }
  }

  /// The local address of an IPv4 or IPv6 socket: getsockname(2). The unspecified address before the socket
  /// is connected or bound. `nil` when the call fails.
  static func local(of descriptor: Int32) -> IPAddress? {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutableBytes(of: &storage) { storage in
      let isNamed = storage.withMemoryRebound(to: sockaddr.self) {
        getsockname(descriptor, $0.baseAddress, &length) == 0
      }
      return isNamed ? IPAddress(socketAddress: UnsafeRawPointer(storage.baseAddress)) : nil
    }
  }

  /// The local port of an IPv4 or IPv6 socket, in host byte order; 0 before the socket is connected or bound.
  /// `nil` when the call fails. The port is at the same offset in the addresses of both families.
  static func localPort(of descriptor: Int32) -> UInt16? {
    var storage = sockaddr_in6()
    var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
    return withUnsafeMutableBytes(of: &storage) { storage in
      let isNamed = storage.withMemoryRebound(to: sockaddr.self) {
        getsockname(descriptor, $0.baseAddress, &length) == 0
      }
      return isNamed ? UInt16(bigEndian: storage.loadUnaligned(fromByteOffset: 2, as: UInt16.self)) : nil
    }
  }

  /// Connects a socket to the `sockaddr` that the bytes contain. Returns the result of connect(2).
  private static func connect(_ descriptor: Int32, _ address: UnsafeRawBufferPointer) -> Int32 {
    address.withMemoryRebound(to: sockaddr.self) {
      Glibc.connect(descriptor, $0.baseAddress, socklen_t(address.count))
    }
  }
}

extension IPAddress {
  /// Reads an IPv4 or IPv6 `sockaddr`. The memory must have the full size of that family's structure.
  package init?(socketAddress: UnsafeRawPointer?) {
    guard let socketAddress else { return nil }
    switch Int32(socketAddress.load(as: sockaddr.self).sa_family) {
    case AF_INET:
      self.init(v4: UInt32(bigEndian: socketAddress.load(as: sockaddr_in.self).sin_addr.s_addr))
    case AF_INET6:
      var address = socketAddress.load(as: sockaddr_in6.self).sin6_addr
      self.init(v6: withUnsafeBytes(of: &address) { Array($0) })
    default: return nil
    }
  }
}
