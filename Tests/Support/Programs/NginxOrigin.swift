import NetOptTestSupport
import Glibc
package import NetOptCore

/// An nginx origin server: HTTP/2 and TLS on several loopback addresses at one port, each address with its
/// own certificate. `NginxConfiguration` lists the resources.
///
/// nginx runs as one process in the foreground (`master_process off`), so that ending the process ends the
/// whole server. This works for root and for other users.
package final class NginxOrigin: Sendable {
  /// An address at which the origin listens, with its security.
  package struct Listener: Sendable, Hashable {
    /// The security of connections to the address.
    package enum Security: Sendable, Hashable {
      /// TLS. Presents this certificate, whatever name the client asks for.
      case certificate(TestCertificate)
      /// TLS. Ends every handshake with the alert `unrecognized_name`.
      case rejected
      /// Plain HTTP without TLS.
      case none
    }

    /// The address.
    package let address: IPAddress
    /// The security of connections to the address.
    package let security: Security

    /// Makes a listener.
    package init(_ address: IPAddress, _ security: Security) {
      self.address = address
      self.security = security
    }
  }

  /// The addresses at which the server listens.
  package let listeners: [Listener]
  /// The port at all addresses.
  package let port: UInt16
  /// The directory with the configuration, logs and files.
  package let directory: String

  private let process: ChildProcess

  private init(_ listeners: [Listener], port: UInt16, directory: String, process: ChildProcess) {
    self.listeners = listeners
    self.port = port
    self.directory = directory
    self.process = process
  }

  /// Starts an origin. Returns when it accepts connections.
  ///
  /// - Parameters:
  ///   - listeners: the addresses, without duplicates.
  ///   - port: the port at all addresses. Default: a free port.
  ///   - settings: limits and additional directives.
  /// - Throws: `TestSupportError` with the output of nginx when nginx is not installed or does not start.
  package static func start(
    _ listeners: [Listener], port: UInt16? = nil, settings: NginxSettings = NginxSettings()
  ) async throws -> NginxOrigin {
    let port = try port ?? FreePort.find(on: listeners.map(\.address))
    let directory = try TemporaryDirectory.make("nginx")
    let configuration = NginxConfiguration(
      listeners: listeners, port: port, settings: settings, directory: directory)
    try configuration.writeFiles()
    let process = try ChildProcess(
      "nginx", ["-p", directory, "-c", configuration.file, "-e", "stderr"], in: directory)
    let origin = NginxOrigin(listeners, port: port, directory: directory, process: process)
    // nginx writes this file after all its sockets listen.
    try await process.wait(untilReady: { !TextFile.read(configuration.processIDFile).isEmpty })
    return origin
  }

  /// Starts an origin with the same valid certificate for `names` at all addresses.
  package static func start(
    for names: [String], on addresses: [IPAddress], port: UInt16? = nil,
    settings: NginxSettings = NginxSettings()
  ) async throws -> NginxOrigin {
    let certificate = try await TestCertificates.certificate(for: names)
    return try await start(
      addresses.map { Listener($0, .certificate(certificate)) }, port: port, settings: settings)
  }

  /// The endpoints, in the order of the listeners.
  package var endpoints: [IPEndpoint] { listeners.map { IPEndpoint($0.address, port: port) } }

  /// The output of nginx, which is its error log.
  package var errorLog: String { TextFile.read(process.output) }

  /// Adds a file that the origin serves at `/NAME`.
  package func serve(_ bytes: [UInt8], at name: String) throws {
    try TextFile.write(bytes, to: "\(directory)/content/\(name)")
  }

  /// Ends the server. Returns after the process has ended. May be called again.
  package func stop() { process.stop() }

  /// Kills the server with SIGKILL. Returns after the process has ended. Connections are reset, and requests
  /// under way are not logged.
  package func kill() {
    process.send(SIGKILL)
    process.stop()
  }

  /// Suspends the server with SIGSTOP. Its connections stay open, and the kernel accepts further connections,
  /// but the server answers no request.
  package func freeze() { process.send(SIGSTOP) }

  /// Resumes the server after `freeze`.
  package func thaw() { process.send(SIGCONT) }
}
