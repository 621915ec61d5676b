import FoundationEssentials
import NetOpt
import NetOptCore
import NetOptRouting
import NetOptTestSupport
import TestTools

/// A host with several listed addresses, nginx on those that work, and a name server.
struct Lab {
  static let host = "api.test"

  let addresses: [IPAddress]
  let port: UInt16
  let origin: NginxOrigin
  let dns: DNSServer
  private let others: [LoopbackServer]

  /// The server behind a listed address.
  enum Kind {
    case works
    case certificate([String])
    case behaves(LoopbackServer.Behaviour)
    case refuses
  }

  /// - Parameters:
  ///   - kinds: the servers behind the listed addresses.
  ///   - isInDNS: whether DNS knows the host, at an additional address with a working server.
  init(_ kinds: [Kind], isInDNS: Bool = true) async throws {
    addresses = IPAddress.freshLoopback(kinds.count + 1)
    port = try FreePort.find(on: addresses)
    let valid = try await TestCertificates.certificate(for: [Lab.host])
    var listeners = [NginxOrigin.Listener(addresses[kinds.count], .certificate(valid))]
    var others: [LoopbackServer] = []
    for (kind, address) in zip(kinds, addresses) {
      switch kind {
      case .works: listeners.append(NginxOrigin.Listener(address, .certificate(valid)))
      case .certificate(let names):
        let other = try await TestCertificates.certificate(for: names)
        listeners.append(NginxOrigin.Listener(address, .certificate(other)))
      case .behaves(let behaviour): others.append(try LoopbackServer(behaviour, on: address, port: port))
      case .refuses: break
      }
    }
    self.others = others
    origin = try await NginxOrigin.start(listeners, port: port)
    var names = ["other.test": [addresses[kinds.count]]]
    if isInDNS { names[Lab.host] = [addresses[kinds.count]] }
    dns = try await DNSServer.start(names)
  }

  /// The address that only DNS knows.
  var unlisted: IPAddress { addresses[addresses.count - 1] }
  var listed: [IPAddress] { Array(addresses.dropLast()) }

  /// How many connections the servers of this process have open.
  var openConnections: Int { others.reduce(0) { $0 + $1.openConnections } }

  func stop() {
    origin.stop()
    dns.stop()
    for server in others { server.stop() }
  }

  var list: EndpointList { list(listed.map { ListedEndpoint($0) }) }
  /// The same list, whose endpoints are tried in this order while nothing is known.
  var weighted: EndpointList { list(listed.enumerated().map { ListedEndpoint($1, weight: 1000 - $0) }) }

  private func list(_ endpoints: [ListedEndpoint]) -> EndpointList {
    let now = Date()
    return EndpointList(
      serial: 1, issued: now, expires: now.addingTimeInterval(3600),
      hosts: [Lab.host: HostEntry(port: port, endpoints: endpoints)])
  }

  func client(_ change: (inout ClientConfiguration) -> Void = { _ in }) async throws -> NetOptClient {
    var configuration = ClientConfiguration()
    configuration.list = .list(list)
    configuration.tls.caFile = try await TestCertificates.authorityFile()
    configuration.dns.servers = [dns.endpoint.description]
    configuration.proxy = .none
    configuration.rankingHistory = .none
    change(&configuration)
    return try NetOptClient(configuration)
  }

  func request(_ method: NetOptRequest.Method = .get, _ target: String = "/") throws -> NetOptRequest {
    try NetOptRequest(method, "https://\(Lab.host):\(port)\(target)")
  }

  /// The origin's log entries for the listed and unlisted addresses, once `count` requests are over.
  func log(_ count: Int) async throws -> [AccessLogEntry] { try await origin.waitForLog(count) }
}
