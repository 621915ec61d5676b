package import NetOptCore

/// Something that is measured: one address of the list, or what DNS answers.
package struct BenchTarget: Hashable, Sendable {
  /// The kinds of targets, as `--targets` names them.
  package enum Kind: String, CaseIterable, Sendable {
    /// An address of the list.
    case ip
    /// What the resolver answers: the control.
    case dns
  }

  /// The address, or `nil` for DNS.
  package let address: IPAddress?
  /// The port.
  package let port: UInt16
  /// The region that the list gives.
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

  /// Makes the control: the answers of DNS.
  package static func dns(port: UInt16) -> BenchTarget { BenchTarget(dnsAt: port) }

  /// What kind of target it is.
  package var kind: Kind { address == nil ? .dns : .ip }

  /// The name in reports: the address, or `dns`.
  package var id: String { address?.description ?? "dns" }

  /// The way its requests go.
  package var routing: RequestOptions.Routing { address.map { .pinned($0) } ?? .dns }
}
