import FoundationEssentials
import NetOpt
import NetOptCore
import NetOptRouting
import NetOptTestSupport
import TestTools

/// The servers of a storm: two nginx servers with one backend behind them, a splice in front of both, and a
/// name server. All host names share the few addresses and ports of the splice.
final class StormOrigins: Sendable {
  /// The nginx whose connections have no tight limits.
  let lasting: StormNginx
  /// The nginx with tight limits: GOAWAY after 15 requests and few streams, four requests per HTTP/1.1
  /// connection, or only TLS 1.2.
  let limited: StormNginx
  /// Accepts the connections of the clients, and forwards them to the nginx servers.
  let splice: Splice
  /// The name server that the clients ask.
  private let dns: DNSServer
  private let backend: Backend
  /// The server at `Addresses.hole`, which lets no connection be established.
  private let hole: LoopbackServer
  private let ledger: Ledger
  /// The addresses that the clients connect to.
  private let addresses: Addresses
  /// The port numbers. Each is the same at all addresses.
  private let ports: [StormHost.Port: UInt16]
  /// The file with the certificate of the authority that the clients trust.
  private let authorityFile: String

  /// The addresses of the host names, in the endpoint list and in DNS.
  private struct Addresses: Sendable {
    /// An address at which the splice listens; most names have it.
    let first: IPAddress
    /// Another address at which the splice listens.
    let second: IPAddress
    /// An address on which no server listens.
    let dead: IPAddress
    /// An address where no connection is ever established.
    let hole: IPAddress
    /// The IPv6 address at which the splice listens; `nil` on a machine without IPv6.
    let six: IPAddress?

    /// The addresses at which the splice listens.
    var open: [IPAddress] { [first, second] + (six.map { [$0] } ?? []) }

    /// The addresses of a name in the endpoint list.
    func listed(_ name: String) -> [IPAddress] {
      switch name {
      case "new.test", "older.test", "mixed.test", "split.test": [first, second]
      case "tls12.test": [second]
      case "dead.test": [dead, first]
      case "hole.test": [hole, first]
      case "six.test": six.map { [$0] } ?? [first]
      default: [first]
      }
    }

    /// The addresses of a name in DNS.
    func inDNS(_ name: String) -> [IPAddress] {
      switch name {
      case "unlisted-new.test", "plain.test", "split.test": [first, second]
      case "tls12.test": [second]
      case "six.test": six.map { [$0] } ?? [first]
      default: [first]
      }
    }
  }

  /// Whether this machine has IPv6 on loopback.
  static let hasIPv6 = (try? FreePort.find(on: [IPAddress("::1") ?? .loopback])) != nil

  /// Starts all servers.
  ///
  /// - Parameters:
  ///   - ledger: gets the arrivals of requests.
  ///   - fault: returns the fault of each connection through the splice, by the number of the connection from
  ///     0; `nil` for none.
  init(_ ledger: Ledger, fault: @escaping @Sendable (Int) -> SpliceFault?) async throws {
    self.ledger = ledger
    let open = IPAddress.freshLoopback(5)
    addresses = Addresses(
      first: open[0], second: open[1], dead: open[2], hole: open[3],
      six: Self.hasIPv6 ? IPAddress("::1") : nil)
    // The nginx servers and the backend are at `behind`. The ports of the splice must be free at
    // `everywhere`.
    let (behind, everywhere) = (open[4], addresses.open + [addresses.dead, addresses.hole])
    var ports: [StormHost.Port: UInt16] = [:]
    for port in StormHost.Port.allCases { ports[port] = try FreePort.find(on: everywhere) }
    self.ports = ports
    authorityFile = try await TestCertificates.authorityFile()
    backend = try Backend(on: behind, ledger)
    let certificate = try await TestCertificates.certificate(for: StormHost.names)
    // The endpoints of the nginx servers, three for each.
    let inner = try (0..<6).map { _ in IPEndpoint(behind, port: try FreePort.find(on: [behind])) }
    lasting = try await StormNginx(
      [
        StormNginx.Listener(endpoint: inner[0], http2: true), StormNginx.Listener(endpoint: inner[1]),
        StormNginx.Listener(endpoint: inner[2], isSecure: false),
      ], certificate, backend: backend.endpoint)
    limited = try await StormNginx(
      [
        StormNginx.Listener(endpoint: inner[3], http2: true, requests: 15, streams: 6),
        StormNginx.Listener(endpoint: inner[4], requests: 4),
        StormNginx.Listener(endpoint: inner[5], http2: true, tlsVersions: "TLSv1.2"),
      ], certificate, backend: backend.endpoint)
    splice = try Splice(Self.frontends(addresses, ports, inner), fault: fault)
    hole = try LoopbackServer(.blackHole, on: addresses.hole, port: ports[.first] ?? 0)
    let records = StormHost.names.map { [addresses] in ($0, addresses.inDNS($0)) }
    dns = try await DNSServer.start(Dictionary(uniqueKeysWithValues: records), timeToLive: 2)
  }

  /// Makes the frontends of the splice. The server behind a name depends on the address and the port.
  /// Connections to a name with two servers go to these servers in turn.
  ///
  /// - Parameter inner: the endpoints of the nginx servers, in the order of their listeners.
  private static func frontends(
    _ addresses: Addresses, _ ports: [StormHost.Port: UInt16], _ inner: [IPEndpoint]
  ) -> [Splice.Frontend] {
    let (new, old, plain) = (inner[0], inner[1], inner[2])
    let (goaway, brief, tls12) = (inner[3], inner[4], inner[5])
    var first: [String: [IPEndpoint]] = [
      "new.test": [new], "old.test": [old], "older.test": [old], "mixed.test": [new, old],
      "split.test": [new], "goaway.test": [goaway], "brief.test": [brief], "tls12.test": [tls12],
      "dead.test": [new], "hole.test": [new], "six.test": [new, old], "unlisted-new.test": [new],
      "unlisted-old.test": [old], "unlisted-mixed.test": [old, new],
    ]
    var frontends: [Splice.Frontend] = []
    for address in addresses.open {
      if address == addresses.second {
        first["mixed.test"] = [old, new]
        first["split.test"] = [old]
      }
      frontends.append(Splice.Frontend(IPEndpoint(address, port: ports[.first] ?? 0), first))
      frontends.append(
        Splice.Frontend(
          IPEndpoint(address, port: ports[.second] ?? 0), ["new.test": [old], "old.test": [new]]))
      frontends.append(Splice.Frontend(IPEndpoint(address, port: ports[.plain] ?? 0), ["": [plain]]))
    }
    return frontends
  }

  /// The value of the `Host` field for a host: its name and port.
  func authority(of host: StormHost) -> String { "\(host.name):\(ports[host.port] ?? 0)" }

  /// The settings that all clients of the storm share: the endpoint list, the trusted authority and the name
  /// server.
  func configuration() -> ClientConfiguration {
    var configuration = ClientConfiguration()
    var entries: [String: HostEntry] = [:]
    for host in StormHost.all where host.isListed {
      entries[host.name] = HostEntry(
        port: ports[host.port] ?? 0, endpoints: addresses.listed(host.name).map { ListedEndpoint($0) })
    }
    configuration.list = .list(EndpointList(hosts: entries))
    configuration.allowPrivateAddresses = true
    configuration.tls.caFile = authorityFile
    configuration.dns.servers = [dns.endpoint.description]
    configuration.proxy = .none
    configuration.rankingHistory = .none
    return configuration
  }

  /// Passes the new lines of nginx's logs to the ledger. Starts a new log when a log has more than 64 MiB.
  func readLogs() {
    for server in [lasting, limited] {
      ledger.read(server.log)
      if server.log.size > 64 << 20 {
        server.rotateLog()
        ledger.read(server.log)
      }
    }
  }

  /// Stops all servers.
  func stop() {
    splice.stop()
    lasting.stop()
    limited.stop()
    readLogs()
    backend.stop()
    hole.stop()
    dns.stop()
  }
}
