import NetOptTestSupport
package import NetOptCore

/// A name server made of dnsmasq, on loopback. It knows the names that it was given and answers NXDOMAIN for all
/// others; it asks nobody.
package final class DNSServer: Sendable {
  /// A question that came in.
  package struct Query: Sendable, Hashable {
    /// The name.
    package let name: String
    /// `A`, `AAAA`.
    package let type: String

    /// Makes a question.
    package init(_ name: String, _ type: String) {
      self.name = name
      self.type = type
    }
  }

  /// Where it listens, UDP and TCP; its description is what `--dns-servers` takes.
  package let endpoint: IPEndpoint

  private let process: ChildProcess

  private init(_ endpoint: IPEndpoint, _ process: ChildProcess) {
    self.endpoint = endpoint
    self.process = process
  }

  /// Starts a name server and returns when it answers.
  ///
  /// - Parameters:
  ///   - records: the addresses of each name; answers give them in this order.
  ///   - timeToLive: the records' time to live, in seconds. Default: 60.
  ///   - address: the loopback address that it listens on. Default: 127.0.0.1.
  ///   - port: the port; by default one that is free.
  /// - Throws: `TestSupportError`, with what dnsmasq said, when it is not installed or does not start.
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
    // Everything is given here, so that no file of the system's has a say. An empty user keeps the present one.
    let arguments = [
      "--conf-file=/dev/null", "--keep-in-foreground", "--user=", "--pid-file=", "--no-resolv", "--no-hosts",
      "--no-poll", "--no-round-robin", "--addn-hosts=\(directory)/hosts", "--local=/#/",
      "--local-ttl=\(timeToLive)",
      "--bind-interfaces", "--listen-address=\(address)", "--port=\(endpoint.port)", "--log-queries",
      "--log-facility=-",
    ]
    let process = try ChildProcess("dnsmasq", arguments, in: directory)
    let server = DNSServer(endpoint, process)
    // It says so when its sockets are bound and the records are read.
    try await process.wait(untilReady: { TextFile.read(process.output).contains("read \(directory)/hosts") })
    return server
  }

  /// What was asked so far. A question is noted before it is answered.
  package func queries() -> [Query] {
    TextFile.read(process.output).split(separator: "\n").compactMap { line in
      // dnsmasq: query[A] api.example.com from 127.0.0.1
      let words = line.split(separator: " ")
      guard let index = words.firstIndex(where: { $0.hasPrefix("query[") }), words.count > index + 1 else {
        return nil
      }
      return Query(String(words[index + 1]), String(words[index].dropFirst(6).dropLast()))
    }
  }

  /// Ends it and returns when it is gone. May be called again.
  package func stop() { process.stop() }
}
