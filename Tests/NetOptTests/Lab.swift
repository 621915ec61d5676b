import FoundationEssentials
import NetOpt
import NetOptCore
import NetOptRouting
import NetOptTestSupport
import TestTools

/// The host `api.test` with several listed addresses, and a server at most of them. A name server knows one
/// more address of the host.
struct Lab {
  static let host = "api.test"

  /// The listed addresses in the order of the list, and then the address that only DNS knows.
  let addresses: [IPAddress]
  /// The port of all servers except the name server.
  let port: UInt16
  /// The nginx at the addresses with the kinds `works` and `certificate`, and at `unlisted`.
  let origin: NginxOrigin
  let dns: DNSServer
  /// The servers at the addresses with the kind `behaves`.
  private let others: [LoopbackServer]

  /// The server behind a listed address.
  enum Kind {
    /// nginx with a valid certificate.
    case works
    /// nginx with a certificate for these names.
    case certificate([String])
    /// A loopback server with this behaviour.
    case behaves(LoopbackServer.Behaviour)
    /// None. Connections are refused.
    case refuses
  }

  /// - Parameters:
  ///   - kinds: the servers behind the listed addresses, in the order of the list.
  ///   - isInDNS: whether DNS knows the host. Its address in DNS is `unlisted`, where a server works.
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

  /// The address that is not in the list. DNS knows it, unless the lab was made with `isInDNS: false`.
  var unlisted: IPAddress { addresses[addresses.count - 1] }
  /// The listed addresses, in the order of the list.
  var listed: [IPAddress] { Array(addresses.dropLast()) }

  /// The number of open connections of the loopback servers. The connections of nginx do not count.
  var openConnections: Int { others.reduce(0) { $0 + $1.openConnections } }

  /// Stops all servers.
  func stop() {
    origin.stop()
    dns.stop()
    for server in others { server.stop() }
  }

  /// The list with the listed addresses. It expires in an hour.
  var list: EndpointList { list(listed.map { ListedEndpoint($0) }) }
  /// The list with decreasing weights. The client tries its endpoints in this order as long as it knows
  /// nothing about them.
  var weighted: EndpointList { list(listed.enumerated().map { ListedEndpoint($1, weight: 1000 - $0) }) }

  private func list(_ endpoints: [ListedEndpoint]) -> EndpointList {
    let now = Date()
    return EndpointList(
      serial: 1, issued: now, expires: now.addingTimeInterval(3600),
      hosts: [Lab.host: HostEntry(port: port, endpoints: endpoints)])
  }

  /// Makes a client with `list` and the name server. The client saves no ranking and uses no proxy.
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

  /// Waits until nginx has logged at least `count` requests. Returns the log with the requests to all
  /// addresses of nginx.
  func log(_ count: Int) async throws -> [AccessLogEntry] { try await origin.waitForLog(count) }
}
