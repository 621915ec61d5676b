package import NetOptTestSupport
package import NetOptCore
import Synchronization

/// A bench with real servers on loopback. nginx (`NginxOrigin`) serves the `working`, `alsoWorking` and
/// `impostor` addresses. A `LoopbackServer` serves the `silent` address, at the same port. nginx forwards
/// requests for resources that it cannot serve itself, such as `cut`, to another `LoopbackServer`, the
/// upstream server. Nothing listens at the `refusing` address.
package final class LoopbackConformanceBench: ConformanceBench {
  /// What the transport needs to reach the servers.
  package struct Setting: Sendable {
    /// The file with the certificate of the authority that signed the servers' certificates.
    package let authorityFile: String
    /// The resolver that the transport must use.
    package let resolver: StubResolver
  }

  /// The transport to check.
  package let transport: any Transport
  /// `https://conformance.example`, with the port of the servers.
  package let origin: Origin
  /// `https://unknown.example`.
  package let unknownOrigin = Origin(.https, host: "unknown.example")
  /// The HTTP version of the requests.
  package let version: RequestOptions.Version
  private let addresses: [ConformanceBehaviour: IPAddress]
  /// The server of the `working`, `alsoWorking` and `impostor` addresses.
  private let nginx: NginxOrigin
  /// The server to which nginx forwards requests for `noAnswer`, `dropped`, `cut` and `stalled`.
  private let upstream: LoopbackServer
  /// The server of the `silent` address.
  private let silent: LoopbackServer
  /// The number of connections to the silent address that `waitForAttempt` has already counted.
  private let attempts = Atomic(0)

  /// Starts the servers and makes the transport.
  ///
  /// - Parameters:
  ///   - version: the HTTP version of the requests. Default: HTTP/2, which nginx offers.
  ///   - makeTransport: makes the transport to check. The check shuts the transport down.
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

  /// Answers a request that nginx has forwarded. The path ends with the name of the resource.
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

  /// The loopback address that behaves in a given way.
  package func address(_ behaviour: ConformanceBehaviour) -> IPAddress { addresses[behaviour] ?? .loopback }

  /// The path of a resource. Paths below `/upstream/` are served by `upstream`, all others by nginx.
  package func path(_ resource: ConformanceResource) -> String {
    switch resource {
    case .small: "/"
    case .pattern: "/pattern"
    case .upload: "/upload"
    case .noAnswer, .dropped, .cut, .stalled: "/upstream/\(resource.rawValue)"
    }
  }

  /// Reads the addresses from nginx's access log, after it has the expected number of requests.
  package func received(_ mark: String, expected: Int) async throws -> [IPAddress] {
    try await nginx.waitForLog(expected) { $0.target.hasSuffix(mark) }.compactMap(\.address)
  }

  /// Waits until the request reaches `upstream`.
  package func waitForRequest(_ mark: String) async throws {
    try await wait(for: "a request with the mark \(mark)") {
      upstream.requests.contains { $0.target.hasSuffix(mark) }
    }
  }

  /// Waits for a further connection to `silent`.
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
