import NetOptTestSupport
import FoundationEssentials
package import NetOptCore
import NetOptLocking

/// The server of `Tests/Hostile`, a Python program. The host name of a request selects the scenario: how the
/// server misbehaves.
package final class HostileServer: Sendable {
  /// The server that all tests share. It ends with the test process.
  package static let shared = Task { try await HostileServer() }

  /// The server's endpoint for HTTP.
  package let plain: IPEndpoint
  /// The server's endpoint for HTTPS.
  package let secure: IPEndpoint
  /// The file with the certificate of the authority that signed the server's certificate.
  package let authorityFile: String
  private let process: ChildProcess
  /// The network that the server is in; `nil` for this machine's network.
  private let namespace: NetworkNamespace?
  /// The length in bytes of the output that is already known: the line of the ports, and the faults that
  /// `newFaults` has returned.
  private let printed: Locked<Int>

  /// Debian's Python, which has the modules that `scripts/install-dependencies` installs. PATH may find
  /// another Python first.
  private static let python = "/usr/bin/python3"

  /// Starts a server.
  ///
  /// - Parameter namespace: the network that the server is in; `nil` for this machine's network.
  package init(in namespace: NetworkNamespace? = nil) async throws {
    self.namespace = namespace
    // libcurl resolves the name of a proxy itself, and resolves names below localhost to this machine (RFC
    // 6761, section 6.3).
    let certificate = try await TestCertificates.certificate(
      for: ["*.hostile.test", "*.proxy.localhost", "\(IPAddress.loopback)"])
    authorityFile = try await TestCertificates.authorityFile()
    let directory = try TemporaryDirectory.make("hostile-server")
    let start: @Sendable () throws -> ChildProcess = {
      try ChildProcess(
        Self.python,
        [
          "-B", RepositoryFile.path("Tests/Hostile/server.py"), certificate.certificateFile,
          certificate.keyFile, "\(IPAddress.loopback)",
        ], in: directory)
    }
    process = try namespace?.run(start) ?? start()
    let output = process.output
    try await process.wait { TextFile.read(output).contains("ready\n") }
    let line = TextFile.read(output)
    let ports = line.split(separator: " ").compactMap { UInt16($0) }
    guard ports.count == 2 else { throw TestSupportError("the hostile server has no ports: \(line)") }
    printed = Locked(line.utf8.count)
    plain = IPEndpoint(.loopback, port: ports[0])
    secure = IPEndpoint(.loopback, port: ports[1])
  }

  /// What the server has printed since the last call, apart from its ports: stack traces of faults in the
  /// server's own code. Empty when there was no such fault.
  package func newFaults() -> String {
    let output = TextFile.read(process.output)
    let known = printed.withLock { printed in
      defer { printed = output.utf8.count }
      return printed
    }
    return String(decoding: output.utf8.dropFirst(known), as: UTF8.self)
  }

  /// The names of all scenarios.
  package static func scenarios() async throws -> [String] {
    let process = try ChildProcess(
      Self.python, ["-B", RepositoryFile.path("Tests/Hostile/server.py"), "--list"],
      in: try TemporaryDirectory.make("hostile-list"))
    try await wait(for: "the list of scenarios") { process.exitStatus() != nil }
    return TextFile.read(process.output).split(separator: "\n").map { String($0) }
  }

  /// The requests that a host has received, in order, each as the text "METHOD NUMBER". The number is `q` in
  /// the query of the request. Some scenarios add lines of their own.
  package func received(by host: String) async throws -> [String] {
    try await control("/received", of: host).split(separator: "\n").map { String($0) }
  }

  /// Makes the server send the data that the scenario of a host holds back. Returns after the data is sent.
  ///
  /// - Returns: the number of pieces that were held back.
  package func release(_ host: String) async throws -> Int {
    Int(try await control("/release", of: host)) ?? 0
  }

  /// Sets the bytes that the scenario `h2-script` of a host sends: complete frames, or malformed ones.
  package func setScript(_ bytes: [UInt8], of host: String) async throws {
    _ = try await control("/script", of: host, body: bytes)
  }

  /// Sends a command to the server, for a host, and returns the body of the response.
  private func control(_ target: String, of host: String, body: [UInt8] = []) async throws -> String {
    // The blocking call runs outside the task pool. The pool may have only two threads, and the code that the
    // test measures runs on them.
    try await Patience.outcome(ofBlocking: { [plain, namespace] in
      let perform: @Sendable () throws -> String = {
        try ControlRequest.perform(target, of: host, at: plain, body: body)
      }
      return Result { try namespace?.run(perform) ?? perform() }
    }).mapError { [process] error in
      guard let status = process.exitStatus() else { return error }
      return TestSupportError(
        "the hostile server has ended with status \(status): \(TextFile.read(process.output)) (\(error))")
    }.get()
  }
}
