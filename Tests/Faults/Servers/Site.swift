import FoundationEssentials
import NetOpt
import NetOptCore
import NetOptRouting
import NetOptTestSupport
import TestTools

/// The servers of one host, with their name server, proxy and wire.
final class Site: Sendable {
  static let host = "cell.test"
  /// An address of the documentation range (RFC 3849), which has no route.
  static let unreachable = IPAddress("2001:db8::1") ?? .loopback

  let origins: [FaultyOrigin]
  let port: UInt16
  let authorityFile: String
  let names: Program
  let namesEndpoint: IPEndpoint
  let proxy: Program
  let proxyEndpoint: IPEndpoint
  /// The wire to the servers; `nil` without a wire.
  let wire: Program?

  /// Starts the servers and everything around them.
  ///
  /// - Parameters:
  ///   - isWired: whether the servers are behind a wire that loses packets; needs a network namespace of the
  ///     process's own.
  ///   - count: the number of servers.
  init(isWired: Bool, origins count: Int = 2) async throws {
    let inner = IPAddress.freshLoopback(count + 2)
    authorityFile = try await TestCertificates.authorityFile()
    let certificates = try await Self.certificates()
    if isWired {
      let directory = try TemporaryDirectory.make("wire")
      wire = try await Program("wire.py", in: directory, [Program.controlFile(in: directory), "\(count)"])
    } else {
      wire = nil
    }
    let outer =
      isWired ? (1...count).map { IPAddress(v4: 0x0a09_0002 + UInt32($0) << 8) } : Array(inner[..<count])
    let bound = isWired ? (1...count).map { IPAddress(v4: 0x0a09_0001 + UInt32($0) << 8) } : outer
    port = try FreePort.find(on: bound)
    var origins: [FaultyOrigin] = []
    for (number, (address, bound)) in zip(outer, bound).enumerated() {
      origins.append(
        try await FaultyOrigin(
          String(UnicodeScalar(UInt8(ascii: "A") + UInt8(number))), at: address, bound: bound, port: port,
          certificates: certificates))
    }
    self.origins = origins
    let (namesAddress, proxyAddress) = (inner[count], inner[count + 1])
    namesEndpoint = IPEndpoint(namesAddress, port: try FreePort.find(on: [namesAddress]))
    let namesDirectory = try TemporaryDirectory.make("names")
    names = try await Program(
      "names.py", in: namesDirectory,
      [
        "\(namesAddress)", "\(namesEndpoint.port)", Program.controlFile(in: namesDirectory),
        "\(outer[1])", "\(proxyAddress)",
      ])
    proxyEndpoint = IPEndpoint(proxyAddress, port: try FreePort.find(on: [proxyAddress]))
    let proxyDirectory = try TemporaryDirectory.make("proxy")
    proxy = try await Program(
      "proxy.py", in: proxyDirectory,
      ["\(proxyAddress)", "\(proxyEndpoint.port)", Program.controlFile(in: proxyDirectory), "\(outer[0])"])
  }

  /// Creates a folder with a certificate of each kind.
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

  /// The settings of a client.
  ///
  /// - Parameter fault: the fault to play, if its location is the name server, the proxy or the endpoint
  ///   list.
  func configuration(for fault: Fault? = nil) -> ClientConfiguration {
    var configuration = ClientConfiguration()
    let endpoints = addresses(for: fault).enumerated().map { ListedEndpoint($1, weight: 1000 - $0) }
    configuration.list = .list(EndpointList(hosts: [Self.host: HostEntry(port: port, endpoints: endpoints)]))
    configuration.allowPrivateAddresses = true
    configuration.tls.caFile = authorityFile
    configuration.dns.servers = ["127.0.0.1:1"]
    configuration.proxy = .none
    configuration.rankingHistory = .none
    if case .names = fault?.location { configuration.dns.servers = [namesEndpoint.description] }
    if case .proxy = fault?.location { configuration.proxy = .url("http://\(proxyEndpoint)") }
    return configuration
  }

  /// The addresses that clients get, in their order of preference.
  func addresses(for fault: Fault?, victim: FaultyOrigin? = nil) -> [IPAddress] {
    let known = origins.map(\.address)
    switch fault?.location {
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
