// CNetwork's headers include system headers. When the compiler compiles this file first, it finds the
// declarations of those headers only through CNetwork.
import CNetwork
import Glibc
package import NetOptCore

/// The source address from which this host would send to a destination.
package enum SourceAddress {
  /// Whether this host has a source address that fits a destination (RFC 6724, section 5, rules 5 and 6, and
  /// section 6, rule 1).
  ///
  /// A global IPv6 destination requires a global source address: packets from a private source address get no
  /// answer, because networks hardly ever translate IPv6 addresses (NAT). Networks translate private IPv4
  /// addresses, so any IPv4 source address fits.
  package static func fits(_ destination: IPAddress) -> Bool {
    guard let source = source(for: destination) else { return false }
    return destination.family == .v4 || destination.scope != .global || source.scope == .global
  }

  /// The source address for a destination; `nil` without a route to it. Asks the kernel by connecting a
  /// datagram socket, which sends nothing.
  static func source(for destination: IPAddress) -> IPAddress? {
    let family = destination.family == .v4 ? AF_INET : AF_INET6
    let descriptor = socket(family, netopt_socket_datagram | netopt_socket_close_on_exec, 0)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    // Any port except zero works.
    guard SocketAddress.connect(descriptor, to: IPEndpoint(destination, port: 9)) == 0 else { return nil }
    return SocketAddress.local(of: descriptor)
  }
}
