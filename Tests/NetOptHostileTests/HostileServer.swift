import FoundationEssentials
import NetOptCore
import NetOptLocking
import NetOptTestSupport

/// The server of `Tests/Hostile`, which misbehaves as the names of its hosts ask for.
final class HostileServer: Sendable {
  /// The one that all tests share. It ends with the test process.
  static let shared = Task { try await HostileServer() }

  let plain: Endpoint
  let secure: Endpoint
  let authorityFile: String
  private let process: ChildProcess
  /// How much of its output is known.
  private let printed: Locked<Int>

  private init() async throws {
    let certificate = try await TestCertificates.certificate(for: ["*.hostile.test"])
    authorityFile = try await TestCertificates.authorityFile()
    process = try ChildProcess(
      "python3",
      [
        "-B", RepositoryFile.path("Tests/Hostile/server.py"), certificate.certificateFile,
        certificate.keyFile,
        "\(IPAddress.loopback)",
      ], in: try TemporaryDirectory.make("hostile-server"))
    let process = process
    try await wait(for: "the hostile server's ports") {
      if process.exitStatus() != nil { throw TestSupportError(try Self.output(of: process)) }
      return try Self.output(of: process).contains("ready")
    }
    let ports = try Self.output(of: process).split(separator: " ").compactMap { UInt16($0) }
    printed = Locked(try Self.output(of: process).count)
    guard ports.count == 2 else { throw TestSupportError(try Self.output(of: process)) }
    plain = Endpoint(.loopback, port: ports[0])
    secure = Endpoint(.loopback, port: ports[1])
  }

  private static func output(of process: ChildProcess) throws -> String {
    String(
      decoding: try FileBytes.read(process.output, upTo: 1 << 20, as: "the server's output", in: .connect),
      as: UTF8.self)
  }

  /// What it has printed besides its ports, since it was last asked: the traces of faults of its own.
  func newFaults() throws -> String {
    let output = try Self.output(of: process)
    let printed = printed.withLock { printed in
      defer { printed = output.count }
      return printed
    }
    return String(output.dropFirst(printed))
  }

  /// The names of all scenarios.
  static func scenarios() async throws -> [String] {
    let process = try ChildProcess(
      "python3", ["-B", RepositoryFile.path("Tests/Hostile/server.py"), "--list"],
      in: try TemporaryDirectory.make("hostile-list"))
    try await wait(for: "the list of scenarios") { process.exitStatus() != nil }
    return try output(of: process).split(separator: "\n").map { String($0) }
  }

  /// The requests that a host has received, each as its method and the number of its question.
  func received(by host: String) throws -> [String] {
    try ControlRequest.get("/received", of: host, at: plain).split(separator: "\n").map { String($0) }
  }

  /// Has sent what scenarios of a host hold back, and returns when it is sent.
  ///
  /// - Returns: how much it was.
  func release(_ host: String) throws -> Int {
    Int(try ControlRequest.get("/release", of: host, at: plain)) ?? 0
  }
}
