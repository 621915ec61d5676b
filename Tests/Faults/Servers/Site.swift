import FoundationEssentials
import NetOpt
import NetOptCore
import NetOptRouting
import NetOptTestSupport

/// Two servers of one host, with what stands around them.
final class Site: Sendable {
  static let host = "cell.test"
  /// An address of the documentation's (RFC 3849), which leads nowhere.
  static let unreachable = IPAddress("2001:db8::1") ?? .loopback

  let origins: [FaultyOrigin]
  let port: UInt16
  let authorityFile: String
  let names: Program
  let namesEndpoint: Endpoint
  let proxy: Program
  let proxyEndpoint: Endpoint
  /// The wire, where the servers are behind one.
  let wire: Program?

  /// Starts all of it.
  ///
  /// - Parameter isWired: whether the servers are behind a wire that loses packets; takes a network of the process's own.
  init(isWired: Bool) async throws {
    let inner = IPAddress.freshLoopback(4)
    authorityFile = try await TestCertificates.authorityFile()
    let certificates = try await Self.certificates()
    if isWired {
      let directory = try TemporaryDirectory.make("wire")
      wire = try await Program("wire.py", in: directory, [Program.controlFile(in: directory), "2"])
    } else {
      wire = nil
    }
    let outer = isWired ? (1...2).map { IPAddress(v4: 0x0a09_0002 + UInt32($0) << 8) } : Array(inner[..<2])
    let bound = isWired ? (1...2).map { IPAddress(v4: 0x0a09_0001 + UInt32($0) << 8) } : outer
    port = try FreePort.find(on: bound)
    var origins: [FaultyOrigin] = []
    for (name, (address, bound)) in zip(["A", "B"], zip(outer, bound)) {
      origins.append(
        try await FaultyOrigin(name, at: address, bound: bound, port: port, certificates: certificates))
    }
    self.origins = origins
    namesEndpoint = Endpoint(inner[2], port: try FreePort.find(on: [inner[2]]))
    let namesDirectory = try TemporaryDirectory.make("names")
    names = try await Program(
      "names.py", in: namesDirectory,
      [
        "\(inner[2])", "\(namesEndpoint.port)", Program.controlFile(in: namesDirectory),
        "\(outer[1])", "\(inner[3])",
      ])
    proxyEndpoint = Endpoint(inner[3], port: try FreePort.find(on: [inner[3]]))
    let proxyDirectory = try TemporaryDirectory.make("proxy")
    proxy = try await Program(
      "proxy.py", in: proxyDirectory,
      ["\(inner[3])", "\(proxyEndpoint.port)", Program.controlFile(in: proxyDirectory), "\(outer[0])"])
  }

  /// A folder with a certificate of each kind.
  private static func certificates() async throws -> String {
    let directory = try TemporaryDirectory.make("certificates")
    let all: [(String, TestCertificates.Kind, String)] = [
      ("valid", .valid, host), ("wrong", .valid, "other.test"), ("expired", .expired, host),
      ("early", .notYetValid, host),
    ]
    for (file, kind, name) in all {
      let certificate = try await TestCertificates.certificate(kind, for: [name])
      try FileManager.default.copyItem(
        atPath: certificate.certificateFile, toPath: "\(directory)/\(file).pem")
      try FileManager.default.copyItem(atPath: certificate.keyFile, toPath: "\(directory)/\(file).key")
    }
    return directory
  }

  /// The settings of a client for a cell.
  func configuration(for fault: Fault) -> ClientConfiguration {
    var configuration = ClientConfiguration()
    let endpoints = addresses(for: fault).enumerated().map { ListedEndpoint($1, weight: 1000 - $0) }
    configuration.list = .list(EndpointList(hosts: [Self.host: HostEntry(port: port, endpoints: endpoints)]))
    configuration.allowPrivateAddresses = true
    configuration.tls.caFile = authorityFile
    configuration.dns.servers = ["127.0.0.1:1"]
    configuration.proxy = .none
    configuration.rankingHistory = .none
    if case .names = fault.place { configuration.dns.servers = [namesEndpoint.description] }
    if case .proxy = fault.place { configuration.proxy = .url("http://\(proxyEndpoint)") }
    return configuration
  }

  /// The addresses that clients are given, the first one first.
  func addresses(for fault: Fault, victim: FaultyOrigin? = nil) -> [IPAddress] {
    let known = origins.map(\.address)
    switch fault.place {
    case .noRoute: return [Self.unreachable] + known
    default: return known.sorted { a, _ in a == victim?.address }
    }
  }

  func url(_ traffic: Traffic, _ id: String) -> String {
    "https://\(Self.host):\(port)/\(traffic.kind)/\(id)"
  }

  func takeArrivals() throws -> Arrivals {
    var arrivals = Arrivals()
    for origin in origins { arrivals.add(try origin.takeArrivals()) }
    return arrivals
  }

  func stop() {
    for origin in origins { origin.stop() }
    names.stop()
    proxy.stop()
    wire?.stop()
  }
}
