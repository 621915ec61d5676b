import FoundationEssentials
import NetOpt
import NetOptCore
import NetOptRouting

@testable import NetOptCommands

/// Runs of `netopt bench` with a scripted client.
enum BenchFixture {
  static let url = "https://api.example.com/v1/ping"
  /// The first address in the list.
  static let address = Samples.address("203.0.113.7")
  /// The second address in the list.
  static let other = Samples.address("2001:db8::7")
  static let list = EndpointList(hosts: [
    "api.example.com": HostEntry(
      port: 443, endpoints: [ListedEndpoint(address, region: "cn-north"), ListedEndpoint(other)])
  ])

  /// A client that answers every request on the kind of connection that the request wants, pooled or fresh.
  ///
  /// - Parameters:
  ///   - list: the list of the client; `nil` for a client without a list.
  ///   - warning: the client's warning about its list.
  ///   - before: runs before each response. If it throws an error, the request fails with this error.
  static func client(
    list: EndpointList? = list, warning: NetOptError? = nil,
    before: @escaping @Sendable (NetOptRequest) throws(NetOptError) -> Void = { _ in }
  ) -> ScriptedClient {
    let probe = EndpointProbe(
      address: address, region: nil, isp: nil, rank: 1, rtt: .milliseconds(20), samples: [], state: .closed,
      chosen: true, failure: nil)
    return ScriptedClient(
      list: list, warning: warning,
      probes: [HostProbe(host: "api.example.com", port: 443, method: .tls, endpoints: [probe])]
    ) { request throws(NetOptError) in
      try before(request)
      var response = Samples.response(to: request)
      response.reused = request.options.connection == .pooled
      return response
    }
  }

  /// Runs `netopt bench` with these arguments for `url`. With `columns`, standard error is a terminal of
  /// this width.
  static func run(
    _ arguments: [String], client: ScriptedClient = client(), environment: [String: String] = [:],
    columns: Int? = nil, interruption: Interruption = Interruption()
  ) async -> Run {
    await Run(
      ["bench"] + arguments + [url], client: client, environment: environment, columns: columns,
      interruption: interruption)
  }
}

/// The members of a JSON report that the tests read.
struct BenchSummary: Decodable {
  /// The number of rounds of the cold and the warm block; `nil` for a block that the run does not have.
  struct Rounds: Decodable, Equatable { var cold: Int?, warm: Int? }
  struct Plan: Decodable {
    var rounds: Rounds
    /// The limit of the run in seconds (`-z`).
    var duration_s: Double?
    /// The requests per second of an open loop (`-q`).
    var rate: Double?
    /// The number of connections to each target (`-c`).
    var concurrency: Int
    /// The number of requests at the same time on each connection (`-p`).
    var streams: Int
  }
  /// A distribution of durations. The tests read only the number of its values.
  struct Count: Decodable { var n: Int }
  /// How well the client kept up. `late_starts` is the number of requests of an open loop that were sent more
  /// than 1 ms late. `start_lag_us` has the delays of all requests of an open loop. `cpu_us` is the processor
  /// time of the process in microseconds.
  struct ClientCost: Decodable { var late_starts: Int, start_lag_us: Count, cpu_us: Int }
  /// An objective of `--slo`, and whether a target meets it.
  struct SLO: Decodable { var objective: String, target: String, met: Bool }
  struct Target: Decodable { var id: String }
  struct Warning: Decodable { var code: String }
  var argv: [String]
  var seed: Int
  /// Whether the run ended before it was complete.
  var partial: Bool
  var stop_reason: String
  var plan: Plan
  var client: ClientCost
  var slo: [SLO]
  /// The file with the samples (`--export-csv`).
  var samples_path: String?
  var rounds: Rounds
  var targets: [Target]
  var warnings: [Warning]

  init(_ text: String) throws { self = try JSONDecoder().decode(Self.self, from: Data(text.utf8)) }
}
