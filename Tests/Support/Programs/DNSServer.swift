import NetOptTestSupport
package import NetOptCore

/// A dnsmasq name server on loopback. It answers for the configured names, and answers NXDOMAIN for all other
/// names. It forwards no query to another server.
package final class DNSServer: Sendable {
  /// A query that the server received.
  package struct Query: Sendable, Hashable {
    /// The name.
    package let name: String
    /// The record type: `A` or `AAAA`.
    package let type: String

    /// Makes a query.
    package init(_ name: String, _ type: String) {
      self.name = name
      self.type = type
    }
  }

  /// The endpoint at which the server answers over UDP and TCP. Its description is a valid value of the
  /// option `--dns-servers`.
  package let endpoint: IPEndpoint

  private let process: ChildProcess

  private init(_ endpoint: IPEndpoint, _ process: ChildProcess) {
    self.endpoint = endpoint
    self.process = process
  }

  /// Starts a name server. Returns when the server is ready to answer.
  ///
  /// - Parameters:
  ///   - records: the addresses of each name, in the order of the answers.
  ///   - timeToLive: the records' time to live, in seconds. Default: 60.
  ///   - address: the loopback address of the server. Default: 127.0.0.1.
  ///   - port: the port. Default: a free port.
  /// - Throws: `TestSupportError` with the output of dnsmasq when dnsmasq is not installed or does not start.
  package static func start(
    _ records: [String: [IPAddress]], timeToLive: Int = 60, on address: IPAddress = .loopback,
    port: UInt16? = nil
  ) async throws -> DNSServer {
    let endpoint = IPEndpoint(address, port: try port ?? FreePort.find(on: [address]))
    let directory = try TemporaryDirectory.make("dnsmasq")
    let lines = records.sorted { $0.key < $1.key }.flatMap { name, addresses in
      addresses.map { "\($0) \(name)\n" }
    }
    try TextFile.write(lines.joined(), to: "\(directory)/hosts")
    // These options replace all configuration files of the system. An empty user keeps the current user.
    let arguments = [
      "--conf-file=/dev/null", "--keep-in-foreground", "--user=", "--pid-file=", "--no-resolv", "--no-hosts",
      "--no-poll", "--no-round-robin", "--addn-hosts=\(directory)/hosts", "--local=/#/",
      "--local-ttl=\(timeToLive)",
      "--bind-interfaces", "--listen-address=\(address)", "--port=\(endpoint.port)", "--log-queries",
      "--log-facility=-",
    ]
    let process = try ChildProcess("dnsmasq", arguments, in: directory)
    let server = DNSServer(endpoint, process)
    // dnsmasq prints this line when its sockets are bound and the records are read.
    try await process.wait(untilReady: { TextFile.read(process.output).contains("read \(directory)/hosts") })
    return server
  }

  /// The queries so far, in order. dnsmasq logs a query before it answers, so an answered query is included.
  package func queries() -> [Query] {
    TextFile.read(process.output).split(separator: "\n").compactMap { line in
      // Example: dnsmasq: query[A] api.example.com from 127.0.0.1
      let words = line.split(separator: " ")
      guard let index = words.firstIndex(where: { $0.hasPrefix("query[") }), words.count > index + 1 else {
        return nil
      }
      return Query(String(words[index + 1]), String(words[index].dropFirst(6).dropLast()))
    }
  }

  /// Ends the server. Returns after the program has ended. May be called again.
  package func stop() { process.stop() }
}
