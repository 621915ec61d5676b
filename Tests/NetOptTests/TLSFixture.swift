import FoundationEssentials
import NetOpt
import NetOptRouting
import NetOptTestSupport
import TestTools

/// The certificates of `Tests/TLS/certificates.py`, in a directory of their own.
struct TLSFixture: Sendable {
  /// The fixture that tests share which do not change its files.
  static let shared = Task { try await TLSFixture() }

  let directory: String
  /// The pin of each certificate's key, by the name of the certificate.
  let pins: [String: String]

  init() async throws {
    directory = try TemporaryDirectory.make("tls")
    try await ChildProcess.run(
      "/usr/bin/python3", ["-B", RepositoryFile.path("Tests/TLS/certificates.py"), directory], in: directory)
    pins = try JSONDecoder().decode(
      [String: String].self, from: Data(contentsOf: URL(fileURLWithPath: directory + "/pins.json")))
  }

  /// The path of a file.
  func path(_ name: String) -> String { "\(directory)/\(name)" }

  /// The content of a file.
  func bytes(_ name: String) throws -> [UInt8] {
    Array(try Data(contentsOf: URL(fileURLWithPath: path(name))))
  }

  /// Returns the configuration of a client that trusts the fixture's authority and finds its servers only in
  /// a list.
  ///
  /// - Parameter hosts: the servers in the list, by host.
  func configuration(_ hosts: [String: HostEntry]) -> ClientConfiguration {
    var configuration = ClientConfiguration()
    configuration.list = .list(EndpointList(hosts: hosts))
    configuration.rankingHistory = .none
    configuration.proxy = .none
    configuration.dns.servers = ["127.0.0.1:1"]
    configuration.tls.caFile = path("ca.pem")
    return configuration
  }

  /// Returns the settings of a server of `Tests/TLS/servers.py`, as JSON.
  ///
  /// - Parameters:
  ///   - certificate: the name of the server's certificate.
  ///   - authority: the name of the authority whose client certificates the server asks for; `nil` to ask for
  ///     none.
  ///   - more: further members of the JSON object.
  func server(_ certificate: String, asks authority: String? = nil, _ more: String = "") -> String {
    let ca = authority.map { ",\"ca\":\"\(path($0 + ".pem"))\"" } ?? ""
    return "{\"cert\":\"\(path(certificate + ".pem"))\",\"key\":\"\(path(certificate + ".key"))\"\(ca)"
      + "\(more.isEmpty ? "" : ",")\(more)}"
  }
}

/// Servers of `Tests/TLS/servers.py`.
struct TLSServers {
  let ports: [UInt16]
  private let process: ChildProcess

  /// Starts a server for each of the settings (`TLSFixture.server`).
  init(_ settings: [String]) async throws {
    process = try ChildProcess(
      "/usr/bin/python3", ["-B", "-W", "ignore", RepositoryFile.path("Tests/TLS/servers.py")] + settings,
      in: try TemporaryDirectory.make("tls-servers"))
    let output = process.output
    try await process.wait { TextFile.read(output).contains("ready\n") }
    ports = TextFile.read(output).split(separator: " ").compactMap { UInt16($0) }
  }

  func stop() { process.stop() }
}
