import NetOpt
import NetOptCore
import NetOptLocking
import NetOptRouting
import NetOptTestSupport
import TestTools
import Testing

/// The host `Lab.host` with several listed addresses. Each address has an nginx of its own, which a test can
/// kill and start again.
final class Fleet: Sendable {
  /// The addresses of the servers. The list prefers the first one as long as nothing is known about them.
  let addresses: [IPAddress]
  /// The port of all servers.
  let port: UInt16
  private let certificate: TestCertificate
  /// The server that was last started at each address. A test may have killed it since.
  private let running: Locked<[IPAddress: NginxOrigin]>
  /// The settings of nginx, which all servers share.
  private let settings: NginxSettings

  /// Starts the servers.
  ///
  /// - Parameters:
  ///   - count: the number of servers.
  ///   - directives: nginx directives that are added to the configuration of each server.
  init(_ count: Int, directives: String = "", http2: Bool = true) async throws {
    addresses = IPAddress.freshLoopback(count)
    port = try FreePort.find(on: addresses)
    certificate = try await TestCertificates.certificate(for: [Lab.host])
    var settings = NginxSettings()
    settings.directives = directives
    settings.http2 = http2
    self.settings = settings
    running = Locked([:])
    for address in addresses { try await start(address) }
  }

  /// Starts a server at an address where none runs.
  func start(_ address: IPAddress) async throws {
    let origin = try await NginxOrigin.start(
      [NginxOrigin.Listener(address, .certificate(certificate))], port: port, settings: settings)
    running.withLock { $0[address] = origin }
  }

  /// The server that was last started at an address.
  func origin(_ address: IPAddress) throws -> NginxOrigin {
    try #require(running.withLock { $0[address] })
  }

  /// Stops all servers.
  func stop() { for origin in running.withLock({ Array($0.values) }) { origin.stop() } }

  /// Makes a client whose list has the addresses of the fleet.
  ///
  /// - Parameters:
  ///   - listed: how many of the addresses the list has. Default: all.
  ///   - dns: the name server of the client; `nil` for none.
  func client(
    listed: Int? = nil, dns: DNSServer? = nil, _ change: (inout ClientConfiguration) -> Void = { _ in }
  ) async throws -> NetOptClient {
    var configuration = ClientConfiguration()
    let endpoints = addresses.prefix(listed ?? addresses.count).enumerated()
      .map { ListedEndpoint($1, weight: 1000 - $0) }
    configuration.list = .list(EndpointList(hosts: [Lab.host: HostEntry(port: port, endpoints: endpoints)]))
    configuration.tls.caFile = try await TestCertificates.authorityFile()
    // Nothing listens on 127.0.0.1:1. So without `dns` the client has only the addresses of its list.
    configuration.dns.servers = [dns?.endpoint.description ?? "127.0.0.1:1"]
    configuration.proxy = .none
    configuration.rankingHistory = .none
    change(&configuration)
    return try NetOptClient(configuration)
  }

  func request(_ method: NetOptRequest.Method = .get, _ target: String = "/") throws -> NetOptRequest {
    try NetOptRequest(method, "https://\(Lab.host):\(port)\(target)")
  }
}
