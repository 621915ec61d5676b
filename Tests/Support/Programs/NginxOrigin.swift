import NetOptTestSupport
import Glibc
package import NetOptCore

/// An origin server made of nginx: HTTP/2 and TLS on several loopback addresses at one port, each with a certificate
/// of its own. `NginxConfiguration` lists what it serves.
///
/// It is one process in the foreground (`master_process off`), so that ending that process ends all of it, and works
/// for root and everyone else alike.
package final class NginxOrigin: Sendable {
  /// An address that the origin listens on.
  package struct Listener: Sendable, Hashable {
    /// How connections there are secured.
    package enum Security: Sendable, Hashable {
      /// TLS with this certificate, whatever name is asked for.
      case certificate(TestCertificate)
      /// TLS that ends with an alert (`unrecognized_name`) in every handshake.
      case rejected
      /// None: plain HTTP.
      case none
    }

    /// The address.
    package let address: IPAddress
    /// How connections are secured.
    package let security: Security

    /// Makes a listener.
    package init(_ address: IPAddress, _ security: Security) {
      self.address = address
      self.security = security
    }
  }

  /// The addresses that it listens on.
  package let listeners: [Listener]
  /// The port on all of them.
  package let port: UInt16
  /// Its directory: configuration, logs, files.
  package let directory: String

  private let process: ChildProcess

  private init(_ listeners: [Listener], port: UInt16, directory: String, process: ChildProcess) {
    self.listeners = listeners
    self.port = port
    self.directory = directory
    self.process = process
  }

  /// Starts an origin and returns when it accepts connections.
  ///
  /// - Parameters:
  ///   - listeners: its addresses; no address twice.
  ///   - port: the port on all of them; by default one that is free.
  ///   - settings: limits and additional directives.
  /// - Throws: `TestSupportError`, with what nginx said, when it is not installed or does not start.
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
    // nginx writes the file when all its sockets listen.
    try await process.wait(untilReady: { !TextFile.read(configuration.processIDFile).isEmpty })
    return origin
  }

  /// Starts an origin whose addresses all have one valid certificate.
  package static func start(
    for names: [String], on addresses: [IPAddress], port: UInt16? = nil,
    settings: NginxSettings = NginxSettings()
  ) async throws -> NginxOrigin {
    let certificate = try await TestCertificates.certificate(for: names)
    return try await start(
      addresses.map { Listener($0, .certificate(certificate)) }, port: port, settings: settings)
  }

  /// The endpoints, in the listeners' order.
  package var endpoints: [IPEndpoint] { listeners.map { IPEndpoint($0.address, port: port) } }

  /// What nginx printed: its error log.
  package var errorLog: String { TextFile.read(process.output) }

  /// Adds a file to what it serves, at `/NAME`.
  package func serve(_ bytes: [UInt8], at name: String) throws {
    try TextFile.write(bytes, to: "\(directory)/content/\(name)")
  }

  /// Ends it and returns when it is gone. May be called again.
  package func stop() { process.stop() }

  /// Ends it at once, SIGKILL, and returns when it is gone: connections are reset, nothing is logged of what was under way.
  package func kill() {
    process.send(SIGKILL)
    process.stop()
  }

  /// Stops it from running, SIGSTOP: connections stay, the kernel accepts more, and nothing is answered.
  package func freeze() { process.send(SIGSTOP) }

  /// Lets it go on after `freeze`.
  package func thaw() { process.send(SIGCONT) }
}
