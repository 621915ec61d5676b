import NetOpt
import NetOptCore
import NetOptLocking
import NetOptRouting
import NetOptTestSupport
import TestTools
import Testing

/// A host whose listed addresses are separate servers. Each server can be killed and started again.
final class Fleet: Sendable {
  let addresses: [IPAddress]
  let port: UInt16
  private let certificate: TestCertificate
  private let running: Locked<[IPAddress: NginxOrigin]>
  private let settings: NginxSettings

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

  func start(_ address: IPAddress) async throws {
    let origin = try await NginxOrigin.start(
      [NginxOrigin.Listener(address, .certificate(certificate))], port: port, settings: settings)
    running.withLock { $0[address] = origin }
  }

  func origin(_ address: IPAddress) throws -> NginxOrigin {
    try #require(running.withLock { $0[address] })
  }

  func stop() { for origin in running.withLock({ Array($0.values) }) { origin.stop() } }

  func client(
    listed: Int? = nil, dns: DNSServer? = nil, _ change: (inout ClientConfiguration) -> Void = { _ in }
  ) async throws -> NetOptClient {
    var configuration = ClientConfiguration()
    let endpoints = addresses.prefix(listed ?? addresses.count).enumerated()
      .map { ListedEndpoint($1, weight: 1000 - $0) }
    configuration.list = .list(EndpointList(hosts: [Lab.host: HostEntry(port: port, endpoints: endpoints)]))
    configuration.tls.caFile = try await TestCertificates.authorityFile()
    // Without a name server the list is the only route.
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
