import NetOptCore
import Testing

@testable import NetOptCommands

@Suite struct BenchArgumentsTests {
  @Test("bench limits a request to 10 s and a connection to 3 s unless options set the limits")
  func limits() async {
    let usual = BenchFixture.client()
    _ = await BenchFixture.run(["-n1"], client: usual)
    #expect(usual.requests.allSatisfy { $0.options.timeout == .seconds(10) })
    #expect(usual.requests.allSatisfy { $0.options.connectTimeout == .seconds(3) })
    let told = BenchFixture.client()
    _ = await BenchFixture.run(["-n1", "-m", "0", "--connect-timeout=0.5"], client: told)
    #expect(told.requests.allSatisfy { $0.options.timeout == nil })
    #expect(told.requests.allSatisfy { $0.options.connectTimeout == .milliseconds(500) })
  }

  @Test("bench sends the request that the options describe")
  func request() async throws {
    let client = BenchFixture.client()
    _ = await BenchFixture.run(
      ["-n1", "-X", "PUT", "-H", "X-One: 1", "-d", "a=b", "-k", "--http1.1"], client: client)
    let request = try #require(client.requests.first)
    #expect(request.method == "PUT")
    #expect(request.headers["X-One"] == "1")
    #expect(request.body.length == 3)
    #expect(request.options.verification == .none)
    #expect(request.options.version == .http1)
  }

  @Test(
    "--targets, -4 and -6 choose the targets of bench",
    arguments: [
      (["--targets", "ip"], ["203.0.113.7", "2001:db8::7"]), (["--targets", "dns"], ["dns"]),
      (["--targets=ip,dns", "-4"], ["203.0.113.7", "dns"]), (["-6"], ["2001:db8::7", "dns"]),
    ])
  func targets(arguments: [String], targets: [String]) async throws {
    let run = await BenchFixture.run(arguments + ["-n1", "--json"])
    let report = try BenchSummary(run.output)
    #expect(report.targets.map(\.id) == targets)
    #expect(run.code == 0)
  }

  @Test(
    "--cold, --warm, --both and -n choose the blocks and the rounds of bench",
    arguments: [
      ([], 10, 80), (["--cold"], 10, nil), (["--warm"], nil, 80), (["--both", "-n", "3"], 3, 3),
      (["--warm", "--cold", "-n3"], 3, 3),
    ] as [([String], Int?, Int?)])
  func blocksAndRounds(arguments: [String], cold: Int?, warm: Int?) async throws {
    let run = await BenchFixture.run(arguments + ["--targets=dns", "--json"])
    let report = try BenchSummary(run.output)
    #expect(report.plan.rounds == report.rounds)
    #expect(report.rounds.cold == cold && report.rounds.warm == warm)
  }

  @Test(
    "-z limits bench by time instead of rounds",
    arguments: [("0.002", 0.002), ("2ms", 0.002), ("0.00005m", 0.003)])
  func duration(text: String, seconds: Double) async throws {
    let run = await BenchFixture.run(["-z", text, "--targets=dns", "--json"])
    let report = try BenchSummary(run.output)
    #expect(report.plan.duration_s == seconds)
    #expect(report.plan.rounds.cold == nil)
    #expect(report.rounds.cold ?? 0 > 0)
  }

  @Test(
    "bench refuses an invalid option with exit code 64 and sends no request",
    arguments: [
      ["-n", "0"], ["-n", "100001"], ["-n", "5", "-z", "1s"], ["-z", "0"], ["-z", "1d"], ["-z", "x"],
      ["-z", "2e3"],
      ["--targets", ""], ["--targets", "ip,,dns"], ["--targets", "udp"], ["--seed", "-1"],
      ["--seed", "9007199254740992"], ["--warmup", "-1"], ["-m", "soon"],
      ["-q", "0"], ["-q", "20", "-p", "2"], ["-c", "65"], ["-p", "0"], ["--slo", "p95"], ["--alpha", "0"],
      ["--min-effect", "101"], ["--reference", "fast"],
    ])
  func usageErrors(arguments: [String]) async {
    let client = BenchFixture.client()
    let run = await BenchFixture.run(arguments, client: client)
    #expect(run.code == 64)
    #expect(run.output == "")
    #expect(run.errors.hasPrefix("netopt: "))
    #expect(client.requests.isEmpty)
  }

  @Test("the plan of the report contains the concurrency, the streams and the rate")
  func load() async throws {
    let closed = try BenchSummary(
      await BenchFixture.run(["-n2", "-c2", "-p3", "--warm", "--targets=dns", "--json"]).output)
    #expect(closed.plan.concurrency == 2 && closed.plan.streams == 3 && closed.plan.rate == nil)
    #expect(closed.client.start_lag_us.n == 0)
    let open = try BenchSummary(
      await BenchFixture.run(["-n4", "-q", "500", "--warm", "--targets=dns", "--json"]).output)
    #expect(open.plan.rate == 500 && open.client.start_lag_us.n == 4)
  }

  @Test("bench -c3 creates a client for each of its 3 connections")
  func connections() async throws {
    let run = await BenchFixture.run(["-n2", "-c3", "--targets=dns"])
    #expect(run.configurations.count == 3)
  }

  @Test("the report contains the seed, and the same seed repeats the order of the requests")
  func seed() async throws {
    let (first, second, other) = (BenchFixture.client(), BenchFixture.client(), BenchFixture.client())
    let run = await BenchFixture.run(["--json", "-n4"], client: first)
    let report = try BenchSummary(run.output)
    _ = await BenchFixture.run(["--seed", "\(report.seed)", "-n4"], client: second)
    let next = report.seed == 0 ? 1 : report.seed - 1
    _ = await BenchFixture.run(["--seed", "\(next)", "-n4"], client: other)
    // The targets of the requests, in the order of the requests. Leaves out the first request to each of the
    // three targets: these run concurrently, so they have no fixed order.
    func order(_ client: ScriptedClient) -> [RequestOptions.Routing] {
      client.requests.dropFirst(3).map(\.options.routing)
    }
    #expect(order(first) == order(second))
    #expect(order(first) != order(other))
  }
}
