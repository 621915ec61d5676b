package import NetOptCore

/// A target of a run: an address of the list, or the addresses that DNS answers with.
package struct BenchTarget: Hashable, Sendable {
  /// The kind of a target, as `--targets` names it.
  package enum Kind: String, CaseIterable, Sendable {
    /// An address of the list.
    case ip
    /// The addresses that DNS answers with. This target is the control: it shows how fast requests are
    /// without netopt's list.
    case dns
  }

  /// The address; `nil` for the DNS target.
  package let address: IPAddress?
  /// The TCP port of the target's requests.
  package let port: UInt16
  /// The region that the list gives for the address; `nil` without such a region, and for the DNS target.
  package let region: String?

  /// Makes a target of an address.
  package init(_ address: IPAddress, port: UInt16, region: String? = nil) {
    self.address = address
    self.port = port
    self.region = region
  }

  /// Makes the DNS target with a port.
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

  /// How the client routes the target's requests: only to the address, or over DNS.
  package var routing: RequestOptions.Routing { address.map { .pinned($0) } ?? .dns }
}
