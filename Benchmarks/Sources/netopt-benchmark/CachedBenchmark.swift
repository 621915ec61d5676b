import Glibc
import NetOpt

/// What a request costs that is answered from memory, through the whole client.
enum CachedBenchmark {
  static let options = ["-n", "--rounds", "--body"]

  /// Answers everything once.
  private final class Answers: Transport {
    let body: [UInt8]

    init(bodyLength: Int) { body = [UInt8](repeating: 0x78, count: bodyLength) }

    func execute(
      _ request: NetOptRequest, along plan: RoutePlan, in context: CallContext
    ) async throws(NetOptError) -> NetOptResponse {
      let fields: HeaderFields = [
        "Date": "Sat, 21 Nov 2026 00:00:00 GMT", "Cache-Control": "max-age=1000000000", "ETag": "\"abc\"",
        "Content-Type": "application/json", "Server": "benchmark", "Content-Length": "\(body.count)",
      ]
      return NetOptResponse(
        url: request.url, head: ResponseHead(status: 200, fields: fields), body: ResponseBody(body),
        route: RouteReport(plan: plan, legs: []))
    }

    func connect(
      to endpoint: IPEndpoint, of origin: Origin, within limit: Duration, keep: Bool
    ) async throws(LegError) -> ConnectReport { ConnectReport(connect: .zero) }

    func shutdown() async {}
  }

  private struct NoResolver: Resolver {
    func resolve(_ host: String, fresh: Bool) async throws(NetOptError) -> ResolvedAddresses {
      throw NetOptError(.nameNotFound, phase: .resolve, "nothing is looked up here")
    }
    func shutdown() async {}
  }

  static func run(_ options: Options) async throws -> String {
    let count = try options.count("-n", 200_000)
    let rounds = try options.count("--rounds", 10)
    let answers = Answers(bodyLength: try options.count("--body", 10_000))
    var configuration = ClientConfiguration()
    configuration.list = .none
    configuration.proxy = .none
    configuration.rankingHistory = .none
    configuration.cache = ClientConfiguration.Cache()
    let client = try NetOptClient(configuration, transport: answers, resolver: NoResolver())
    let request = try NetOptRequest(
      .get, "https://api.example.com/user/search?q=lamp&page=2", headers: ["Accept": "application/json"])
    _ = try await client.execute(request).body.collect(upTo: 1 << 30)
    var wall: [Double] = []
    var processor: [Double] = []
    for _ in 0..<rounds {
      let before = Cost.now
      for _ in 0..<(count / rounds) {
        let response = try await client.execute(request)
        let body = try await response.body.collect(upTo: 1 << 30)
        guard response.cacheStatus.outcome == .hit, body.count == answers.body.count else {
          throw UsageError("a request was not answered from the cache")
        }
      }
      let after = Cost.now
      let each = 1e6 / Double(count / rounds)
      wall.append((after.wallSeconds - before.wallSeconds) * each)
      processor.append(
        (after.userSeconds + after.systemSeconds - before.userSeconds - before.systemSeconds) * each)
    }
    await client.shutdown()
    func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }
    return "{\"hit_us\": \(median(wall)), \"hit_cpu_us\": \(median(processor))}"
  }
}
