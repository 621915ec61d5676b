import FoundationEssentials
import NetOpt
import NetOptCore
import NetOptRouting

@testable import NetOptCommands

/// Runs of `netopt bench` with a scripted client.
enum BenchFixture {
  static let url = "https://api.example.com/v1/ping"
  static let address = Samples.address("203.0.113.7")
  static let other = Samples.address("2001:db8::7")
  static let list = EndpointList(hosts: [
    "api.example.com": HostEntry(
      port: 443, endpoints: [ListedEndpoint(address, region: "cn-north"), ListedEndpoint(other)])
  ])

  /// A client that answers every request on the kind of connection that the request wants, pooled or fresh.
  ///
  /// - Parameter before: runs before each response. An error from it fails the request.
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
  struct Rounds: Decodable, Equatable { var cold: Int?, warm: Int? }
  struct Plan: Decodable {
    var rounds: Rounds
    var duration_s: Double?
    var rate: Double?
    var concurrency: Int
    var streams: Int
  }
  struct Count: Decodable { var n: Int }
  struct ClientCost: Decodable { var late_starts: Int, start_lag_us: Count, cpu_us: Int }
  struct SLO: Decodable { var objective: String, target: String, met: Bool }
  struct Target: Decodable { var id: String }
  struct Warning: Decodable { var code: String }
  var argv: [String]
  var seed: Int
  var partial: Bool
  var stop_reason: String
  var plan: Plan
  var client: ClientCost
  var slo: [SLO]
  var samples_path: String?
  var rounds: Rounds
  var targets: [Target]
  var warnings: [Warning]

  init(_ text: String) throws { self = try JSONDecoder().decode(Self.self, from: Data(text.utf8)) }
}
