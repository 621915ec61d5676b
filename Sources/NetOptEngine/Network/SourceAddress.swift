// Its headers bring some of the system's; where it is compiled first, what they declare is found in CNetwork alone.
import CNetwork
import Glibc
package import NetOptCore

/// What this host would send from.
package enum SourceAddress {
  /// Whether this host has a source address that fits a destination (RFC 6724, section 5, rules 5 and 6, and
  /// section 6, rule 1).
  ///
  /// A global IPv6 destination wants a global source: one from a private network leads nowhere, since IPv6 is hardly
  /// ever translated. IPv4 is.
  package static func fits(_ destination: IPAddress) -> Bool {
    guard let source = source(for: destination) else { return false }
    return destination.family == .v4 || destination.scope != .global || source.scope == .global
  }

  /// Asks the kernel by connecting a datagram socket, which sends nothing.
  static func source(for destination: IPAddress) -> IPAddress? {
    let family = destination.family == .v4 ? AF_INET : AF_INET6
    let descriptor = socket(family, netopt_socket_datagram | netopt_socket_close_on_exec, 0)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    // Any port but zero.
    guard SocketAddress.connect(descriptor, to: IPEndpoint(destination, port: 9)) == 0 else { return nil }
    return SocketAddress.local(of: descriptor)
  }
}
