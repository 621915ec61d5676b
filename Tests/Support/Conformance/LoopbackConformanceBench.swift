package import NetOptTestSupport
package import NetOptCore
import Synchronization

/// A bench of real servers on loopback: an `NginxOrigin` and `LoopbackServer`s at one port of several
/// addresses. A server behind nginx provides the behaviour that nginx does not have.
package final class LoopbackConformanceBench: ConformanceBench {
  /// The settings for the transport.
  package struct Setting: Sendable {
    /// The file with the certificate of the trusted authority.
    package let authorityFile: String
    /// The resolver of the transport.
    package let resolver: StubResolver
  }

  /// The transport.
  package let transport: any Transport
  /// `https://conformance.example`, with the port of the servers.
  package let origin: Origin
  /// `https://unknown.example`.
  package let unknownOrigin = Origin(.https, host: "unknown.example")
  /// The HTTP version of the requests.
  package let version: RequestOptions.Version
  private let addresses: [ConformanceBehaviour: IPAddress]
  private let nginx: NginxOrigin
  private let upstream: LoopbackServer
  private let silent: LoopbackServer
  /// The number of connections to the silent address that `waitForAttempt` has already counted.
  private let attempts = Atomic(0)

  /// Starts the servers and makes the transport.
  ///
  /// - Parameters:
  ///   - version: the HTTP version of the requests. Default: HTTP/2.
  ///   - makeTransport: makes the transport. The check shuts the transport down.
  package init(
    version: RequestOptions.Version = .automatic,
    makeTransport: (Setting) async throws -> any Transport
  ) async throws {
    let behaviours = ConformanceBehaviour.allCases
    let fresh = IPAddress.freshLoopback(behaviours.count)
    let addresses = Dictionary(uniqueKeysWithValues: zip(behaviours, fresh))
    func address(_ behaviour: ConformanceBehaviour) -> IPAddress { addresses[behaviour] ?? .loopback }
    let port = try FreePort.find(on: fresh)
    self.version = version
    self.addresses = addresses
    origin = Origin(.https, host: "conformance.example", port: port)

    upstream = try LoopbackServer(.raw(Self.serve))
    silent = try LoopbackServer(.silent, on: address(.silent), port: port)
    let certificate = try await TestCertificates.certificate(for: [origin.host])
    let impostor = try await TestCertificates.certificate(for: ["impostor.example"])
    var settings = NginxSettings()
    settings.directives = """
      location /upstream/ {
        proxy_pass http://\(upstream.endpoint); proxy_http_version 1.1; proxy_buffering off;
        error_page 502 = @drop;
      }
      location @drop { return 444; }
      """
    nginx = try await NginxOrigin.start(
      [
        .init(address(.working), .certificate(certificate)),
        .init(address(.alsoWorking), .certificate(certificate)),
        .init(address(.impostor), .certificate(impostor)),
      ], port: port, settings: settings)
    try nginx.serve(TransportConformance.pattern, at: "pattern")
    transport = try await makeTransport(
      Setting(
        authorityFile: try await TestCertificates.authorityFile(),
        resolver: StubResolver(origin.host, [address(.working), address(.refusing)])))
  }

  private static let serve: @Sendable (LoopbackExchange) throws -> Void = { exchange in
    _ = try exchange.readBody()
    let path = exchange.request.target.prefix { $0 != "?" }
    let half = "HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n" + String(repeating: "x", count: 1000)
    switch ConformanceResource(rawValue: String(path.dropFirst("/upstream/".count))) {
    case .dropped: exchange.close()
    case .cut:
      try exchange.write(half)
      exchange.close()
    case .stalled:
      try exchange.write(half)
      try exchange.waitForClose()
    default: try exchange.waitForClose()
    }
  }

  /// The loopback address with a behaviour.
  package func address(_ behaviour: ConformanceBehaviour) -> IPAddress { addresses[behaviour] ?? .loopback }

  /// The path of a resource on nginx or on the server behind nginx.
  package func path(_ resource: ConformanceResource) -> String {
    switch resource {
    case .small: "/"
    case .pattern: "/pattern"
    case .upload: "/upload"
    case .noAnswer, .dropped, .cut, .stalled: "/upstream/\(resource.rawValue)"
    }
  }

  /// Reads the addresses from nginx's access log.
  package func received(_ mark: String, expected: Int) async throws -> [IPAddress] {
    try await nginx.waitForLog(expected) { $0.target.hasSuffix(mark) }.compactMap(\.address)
  }

  /// Waits until the request reaches the server behind nginx.
  package func waitForRequest(_ mark: String) async throws {
    try await wait(for: "a request with the mark \(mark)") {
      upstream.requests.contains { $0.target.hasSuffix(mark) }
    }
  }

  /// Waits for a connection to the silent server.
  package func waitForAttempt() async throws {
    let known = attempts.load(ordering: .relaxed)
    try await wait(for: "a connection to the silent address") { silent.connections > known }
    attempts.store(silent.connections, ordering: .relaxed)
  }

  /// Stops the servers.
  package func stop() async {
    nginx.stop()
    silent.stop()
    upstream.stop()
  }
}
