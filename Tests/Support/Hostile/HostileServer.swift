import NetOptTestSupport
import FoundationEssentials
package import NetOptCore
import NetOptLocking

/// The server of `Tests/Hostile`, which misbehaves as the names of its hosts ask for.
package final class HostileServer: Sendable {
  /// The one that all tests share. It ends with the test process.
  package static let shared = Task { try await HostileServer() }

  /// Where it serves HTTP.
  package let plain: IPEndpoint
  /// Where it serves HTTPS.
  package let secure: IPEndpoint
  /// The authority of its certificate.
  package let authorityFile: String
  private let process: ChildProcess
  /// How much of its output is known.
  private let printed: Locked<Int>

  /// Debian's, which has the modules that `scripts/install-dependencies` installs; another one may be first on PATH.
  private static let python = "/usr/bin/python3"

  private init() async throws {
    // libcurl resolves the name of a proxy by itself, and takes those below localhost for this machine's (RFC 6761, section 6.3).
    let certificate = try await TestCertificates.certificate(
      for: ["*.hostile.test", "*.proxy.localhost", "\(IPAddress.loopback)"])
    authorityFile = try await TestCertificates.authorityFile()
    process = try ChildProcess(
      Self.python,
      [
        "-B", RepositoryFile.path("Tests/Hostile/server.py"), certificate.certificateFile,
        certificate.keyFile, "\(IPAddress.loopback)",
      ], in: try TemporaryDirectory.make("hostile-server"))
    let output = process.output
    try await process.wait { TextFile.read(output).contains("ready\n") }
    let line = TextFile.read(output)
    let ports = line.split(separator: " ").compactMap { UInt16($0) }
    guard ports.count == 2 else { throw TestSupportError("the hostile server has no ports: \(line)") }
    printed = Locked(line.utf8.count)
    plain = IPEndpoint(.loopback, port: ports[0])
    secure = IPEndpoint(.loopback, port: ports[1])
  }

  /// What it has printed besides its ports, since it was last asked: the traces of faults of its own.
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

  /// The requests that a host has received, each as its method and the number of its question.
  package func received(by host: String) async throws -> [String] {
    try await control("/received", of: host).split(separator: "\n").map { String($0) }
  }

  /// Has sent what scenarios of a host hold back, and returns when it is sent.
  ///
  /// - Returns: how much it was.
  package func release(_ host: String) async throws -> Int {
    Int(try await control("/release", of: host)) ?? 0
  }

  /// Says what the scenario `h2-script` of a host sends: whole frames, or what passes for them.
  package func setScript(_ bytes: [UInt8], of host: String) async throws {
    _ = try await control("/script", of: host, body: bytes)
  }

  private func control(_ target: String, of host: String, body: [UInt8] = []) async throws -> String {
    // Not on a thread of the tasks' own: there may be two of these only, and what is measured runs there.
    try await Patience.outcome(ofBlocking: { [plain] in
      Result { try ControlRequest.perform(target, of: host, at: plain, body: body) }
    }).get()
  }
}
