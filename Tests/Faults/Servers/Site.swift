import FoundationEssentials
import NetOpt
import NetOptCore
import NetOptRouting
import NetOptTestSupport
import TestTools

/// The servers of one host, with a name server, a proxy and, if wanted, a wire: a network path that can lose
/// packets.
final class Site: Sendable {
  /// The name of the host.
  static let host = "cell.test"
  /// An address of the documentation range (RFC 3849), for which the machine has no route.
  static let unreachable = IPAddress("2001:db8::1") ?? .loopback

  /// The servers, named "A", "B" and so on.
  let origins: [FaultyOrigin]
  /// The port of every server.
  let port: UInt16
  /// The path of the PEM file with the authority that signed the servers' certificates.
  let authorityFile: String
  /// The name server (`names.py`).
  let names: Program
  let namesEndpoint: IPEndpoint
  /// The HTTP proxy (`proxy.py`). All its tunnels lead to the first server.
  let proxy: Program
  let proxyEndpoint: IPEndpoint
  /// The wire (`wire.py`), which forwards all packets between clients and servers; `nil` without a wire.
  let wire: Program?

  /// Starts the servers, the name server, the proxy and the wire.
  ///
  /// - Parameters:
  ///   - isWired: whether clients reach the servers through a wire. The process then needs a network
  ///     namespace of its own.
  ///   - count: the number of servers, at least 2.
  init(isWired: Bool, origins count: Int = 2) async throws {
    // Loopback addresses: one for each server (unused with a wire), the name server and the proxy.
    let inner = IPAddress.freshLoopback(count + 2)
    authorityFile = try await TestCertificates.authorityFile()
    let certificates = try await Self.certificates()
    if isWired {
      let directory = try TemporaryDirectory.make("wire")
      wire = try await Program("wire.py", in: directory, [Program.controlFile(in: directory), "\(count)"])
    } else {
      wire = nil
    }
    // With a wire, clients reach server N, counted from 1, at 10.9.N.2, and the server listens on 10.9.N.1.
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
    // The name server gives the address of the second server. When it lies, it gives the proxy's address, at
    // which nothing listens on the servers' port.
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

  /// Creates a folder with a certificate of each kind, and returns its path. The files have the names that
  /// `origin.py` expects.
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

  /// The settings of a client whose list has the servers.
  ///
  /// - Parameter fault: the fault that the client will meet. For a fault of the name server or of the proxy,
  ///   the client uses that name server or proxy. For `noRoute`, its list begins with `unreachable`.
  func configuration(for fault: Fault? = nil) -> ClientConfiguration {
    var configuration = ClientConfiguration()
    let endpoints = addresses(for: fault).enumerated().map { ListedEndpoint($1, weight: 1000 - $0) }
    configuration.list = .list(EndpointList(hosts: [Self.host: HostEntry(port: port, endpoints: endpoints)]))
    configuration.allowPrivateAddresses = true
    configuration.tls.caFile = authorityFile
    // No name server listens there.
    configuration.dns.servers = ["127.0.0.1:1"]
    configuration.proxy = .none
    configuration.rankingHistory = .none
    if case .names = fault?.location { configuration.dns.servers = [namesEndpoint.description] }
    if case .proxy = fault?.location { configuration.proxy = .url("http://\(proxyEndpoint)") }
    return configuration
  }

  /// The addresses of the host that clients get, the preferred one first.
  ///
  /// - Parameters:
  ///   - fault: the fault that the client will meet.
  ///   - victim: the server whose address comes first; `nil` for the order of `origins`.
  func addresses(for fault: Fault?, victim: FaultyOrigin? = nil) -> [IPAddress] {
    let known = origins.map(\.address)
    switch fault?.location {
    case .noRoute: return [Self.unreachable] + known
    default: return known.sorted { a, _ in a == victim?.address }
    }
  }

  /// The URL of the request with an id.
  func url(_ traffic: Traffic, _ id: String) -> String {
    "https://\(Self.host):\(port)/\(traffic.kind)/\(id)"
  }

  /// Returns the arrivals at all servers since the last call, and removes them from the logs.
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
