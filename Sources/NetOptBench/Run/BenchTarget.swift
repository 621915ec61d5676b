package import NetOptCore

/// A target of a run: an address of the list, or the addresses that DNS answers with.
package struct BenchTarget: Hashable, Sendable {
  /// The kind of a target, as `--targets` names it.
  package enum Kind: String, CaseIterable, Sendable {
    /// An address of the list.
    case ip
    /// The addresses that the resolver answers with. This target is the control.
    case dns
  }

  /// The address, or `nil` for DNS.
  package let address: IPAddress?
  /// The port.
  package let port: UInt16
  /// The region of the address in the list.
  package let region: String?

  /// Makes a target of an address.
  package init(_ address: IPAddress, port: UInt16, region: String? = nil) {
    self.address = address
    self.port = port
    self.region = region
  }

  private init(dnsAt port: UInt16) {
    address = nil
    region = nil
    self.port = port
  }

  /// Makes the control target: the addresses that DNS answers with.
  package static func dns(port: UInt16) -> BenchTarget { BenchTarget(dnsAt: port) }

  /// The target's kind.
  package var kind: Kind { address == nil ? .dns : .ip }

  /// The target's name in reports: the address, or `dns`.
  package var id: String { address?.description ?? "dns" }

  /// The routing of the target's requests.
  package var routing: RequestOptions.Routing { address.map { .pinned($0) } ?? .dns }
}
