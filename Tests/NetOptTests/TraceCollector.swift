import FoundationEssentials
import NetOpt
import NetOptCore
import NetOptTestSupport
import TestTools

/// `Tests/Telemetry/collector.py`: a server that answers requests, and takes their spans. It checks both with
/// OpenTelemetry's own code.
struct TraceCollector {
  /// Why tests that need the code are skipped.
  static let missing = "OpenTelemetry's code is not there: run scripts/trace-peers, which needs PyPI"
  private static let python = RepositoryFile.path(".build/trace-peers/bin/python")

  /// Whether the code is there.
  static var isInstalled: Bool { FileManager.default.isExecutableFile(atPath: python) }

  /// What arrived.
  struct Dump: Decodable {
    let requests: [Request]
    let spans: [Span]
    /// What OpenTelemetry's code did not understand.
    let faults: [String]
    /// The number of spans of each export.
    let exports: [Int]

    struct Request: Decodable {
      let id, method, trace, span, state: String
      let status: Int
      let sampled: Bool
      /// The fields `traceparent`.
      let parents: [String]
    }

    struct Span: Decodable {
      let trace, span, parent, state, name, service, scope: String
      let flags, kind: Int
      let start, end: Int64
      let attributes: [String: String]
      let events: [[String: String]]
      let error: Bool
    }
  }

  let port: UInt16
  private let program: ChildProcess
  private let reader: NetOptClient

  init() async throws {
    port = try FreePort.find(on: [.loopback])
    program = try ChildProcess(
      Self.python, ["-B", RepositoryFile.path("Tests/Telemetry/collector.py"), String(port)],
      in: try TemporaryDirectory.make("collector"))
    var configuration = ClientConfiguration()
    configuration.proxy = .none
    reader = try NetOptClient(configuration)
    let (collector, program) = (self, program)
    try await wait(for: "the collector", within: .seconds(30)) {
      try (try? await collector.dump()) != nil
        || program.exitStatus().map { _ in throw TestSupportError(TextFile.read(program.output)) } ?? false
    }
  }

  func url(_ path: String) throws -> HTTPURL { try HTTPURL("http://127.0.0.1:\(port)/\(path)") }

  /// A client that exports its traces to the collector.
  func client(_ change: (inout ClientConfiguration) -> Void = { _ in }) throws -> NetOptClient {
    var configuration = ClientConfiguration()
    configuration.proxy = .none
    var telemetry = ClientConfiguration.Telemetry(collector: try url("otlp"), serviceName: "tests")
    telemetry.headers = ["X-Key": "hunter2"]
    telemetry.resource = ["deployment.environment.name": "test"]
    configuration.telemetry = telemetry
    change(&configuration)
    return try NetOptClient(configuration)
  }

  /// What arrived until now.
  func dump() async throws -> Dump {
    let response = try await reader.execute(NetOptRequest(.get, try url("dump")))
    return try await response.decode(Dump.self, upTo: 64 << 20)
  }

  /// Makes the collector answer the next exports with these statuses.
  func refuse(_ statuses: [Int]) async throws {
    _ = try await reader.execute(
      NetOptRequest(.post, try url("refuse"), body: .bytes(Array("\(statuses)".utf8))))
  }

  func stop() async {
    await reader.shutdown()
    program.stop()
  }
}
