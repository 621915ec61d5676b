// ares.h brings some of the system's headers; where it is compiled first, what they declare is found in CAres alone.
import CAres
import Glibc
import NetOptCore

/// What this host would send from.
enum SourceAddress {
  /// Whether this host has a source address that fits a destination (RFC 6724, section 5, rules 5 and 6, and
  /// section 6, rule 1).
  ///
  /// A global IPv6 destination wants a global source: one from a private network leads nowhere, since IPv6 is hardly
  /// ever translated. IPv4 is.
  static func fits(_ destination: IPAddress) -> Bool {
    guard let source = source(for: destination) else { return false }
    return destination.family == .v4 || destination.scope != .global || source.scope == .global
  }

  /// Asks the kernel by connecting a datagram socket, which sends nothing.
  private static func source(for destination: IPAddress) -> IPAddress? {
    let family = destination.family == .v4 ? AF_INET : AF_INET6
    let descriptor = socket(family, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutableBytes(of: &storage) { storage -> IPAddress? in
      // Any port but zero.
      let port = in_port_t(9).bigEndian
      let bytes = destination.bytes
      if destination.family == .v4 {
        var v4 = sockaddr_in()
        v4.sin_family = sa_family_t(AF_INET)
        v4.sin_port = port
        withUnsafeMutableBytes(of: &v4.sin_addr) { $0.copyBytes(from: bytes) }
        storage.storeBytes(of: v4, as: sockaddr_in.self)
      } else {
        var v6 = sockaddr_in6()
        v6.sin6_family = sa_family_t(AF_INET6)
        v6.sin6_port = port
        withUnsafeMutableBytes(of: &v6.sin6_addr) { $0.copyBytes(from: bytes) }
        storage.storeBytes(of: v6, as: sockaddr_in6.self)
      }
      let isNamed = storage.withMemoryRebound(to: sockaddr.self) { address in
        connect(descriptor, address.baseAddress, length) == 0
          && getsockname(descriptor, address.baseAddress, &length) == 0
      }
      return isNamed ? IPAddress(socketAddress: UnsafeRawPointer(storage.baseAddress)) : nil
    }
  }
}

extension IPAddress {
  /// Reads a `sockaddr` of one of the two families, in its own size.
  init?(socketAddress: UnsafeRawPointer?) {
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
