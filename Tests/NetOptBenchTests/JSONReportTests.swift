import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptBench

@Suite struct JSONReportTests {
  @Test("the JSON report of a small run has all members and the measured values")
  func smallRun() async throws {
    var settings = try Fixtures.settings([Fixtures.impostor], length: .rounds(cold: 2, warm: 0))
    settings.blocks = [.cold]
    let report = await Fixtures.report(settings, choice: Fixtures.impostor) {
      request, number throws(NetOptError) in
      if request.options.routing != .dns { throw .leg(.refused) }
      return .answer(request, .cold(dns: Double(number)))
    }
    let value = JSONReport(report).value
    #expect(
      value.names == [
        "schema_version", "tool", "version", "run_id", "started_at", "elapsed_us", "argv", "seed", "partial",
        "stop_reason", "host", "request", "plan", "rounds", "client", "targets", "comparisons", "picker",
        "slo",
        "warnings", "samples_path",
      ])
    // Two cold samples of dns: 71 and 72 ms.
    let text = value.description
    #expect(
      text.contains(
        #""elapsed_us":213000,"argv":["bench","--seed=7","https://api.example.com/v1/ping"],"seed":7"#))
    #expect(
      text.contains(
        #""plan":{"rounds":{"cold":2,"warm":null},"duration_s":null,"rate":null,"concurrency":1,"streams":1,"warmup":0,"alpha":0.05,"min_effect":0.01}"#
      ))
    #expect(
      text.contains(
        #""excluded":{"code":"refused","reason":"connect: refused"},"tls":null,"counts":{"ok":0,"#))
    #expect(text.contains(#""tls":{"verified":true,"version":"TLSv1.3","subject":null,"not_after":null}"#))
    #expect(
      text.contains(
        #""rank":null,"cold":{"n":2,"reused":0,"dependence":1.0,"failed":{"n":0,"share":0.0,"lo":0.0,"hi":0.65"#
      ))
    #expect(
      text.contains(
        #""response_us":{"n":2,"min":71000,"max":72000,"mean":71500.0,"mad":0,"percentiles":[],"hdr":"HIST"#))
    #expect(
      text.contains(#""dns":{"n":2,"min":1000,"max":2000,"mean":1500.0,"mad":0,"percentiles":[],"hdr":""#))
    #expect(
      text.contains(
        #""picker":{"chosen":"192.0.2.66","best":null,"regret_us":null,"kendall_tau":null},"slo":[]"#))
  }

  @Test("percentiles and comparisons in JSON have their intervals")
  func intervals() async throws {
    let text = JSONReport(try await Fixtures.usual()).value.description
    #expect(text.contains(#""percentiles":[{"p":50,"value":25000,"lo":24900,"hi":25200},{"p":90,"#))
    #expect(
      text.contains(
        #"{"a":"203.0.113.7","b":"dns","metric":"p50","rounds":80,"shift_us":-5400.0,"lo":-5400.0,"hi":-5400.0,"#
      ))
    #expect(text.contains(#""method":"signed-rank normal","significant":true}"#))
  }

  @Test("the plan in JSON has the duration in seconds and no rounds")
  func durationPlan() async throws {
    var settings = try Fixtures.settings([], length: .duration(.milliseconds(1500)))
    settings.blocks = [.cold]
    let report = await Fixtures.report(settings) { request, _ in .answer(request) }
    let text = JSONReport(report).value.description
    #expect(
      text.contains(
        #""plan":{"rounds":{"cold":null,"warm":null},"duration_s":1.5,"rate":null,"concurrency":1,"streams":1,"warmup":0,"alpha":0.05,"min_effect":0.01}"#
      ))
  }

  @Test("the JSON report writes a certificate's end as an RFC 3339 timestamp")
  func certificateEnd() async throws {
    var report = try await Fixtures.usual()
    var tls = TLSReport(verified: true)
    tls.notAfter = 1_795_287_600
    report.targets[0].tls = tls
    #expect(
      JSONReport(report).value.description.contains(
        #""tls":{"verified":true,"version":null,"subject":null,"not_after":"2026-11-21T19:00:00Z"}"#))
  }

  @Test("blocks that a run did not reach have 0 rounds in JSON")
  func unreachedBlocks() async throws {
    let text = JSONReport(try await Fixtures.dead()).value.description
    #expect(text.contains(#""rounds":{"cold":0,"warm":0},"client""#))
  }

  @Test(
    "every JSON report conforms to the schema",
    .enabled("\(JSONSchema.missing)") { try await JSONSchema.isInstalled() },
    arguments: Situation.allCases)
  func schemaConformance(situation: Situation) async throws {
    let document = JSONReport(try await situation.report()).value.bytes()
    #expect(try await JSONSchema.faults(of: String(decoding: document, as: UTF8.self), by: "bench") == "")
  }

  @Test(
    "the schema finds a missing key",
    .enabled("\(JSONSchema.missing)") { try await JSONSchema.isInstalled() })
  func missingKey() async throws {
    let text = JSONReport(try await Fixtures.usual()).value.description
    let broken = text.replacing("\"regret_us\"", with: "\"regret\"")
    #expect(try await JSONSchema.faults(of: broken, by: "bench").contains("regret_us"))
  }
}

/// The kinds of runs whose reports the tests check. `report` makes the run of each kind.
enum Situation: CaseIterable {
  case usual, interrupted, dead, failing, empty, openLoop, objectives, connections, sampleLimit, drill

  /// Makes a run of this kind, and returns its report.
  func report() async throws -> BenchReport {
    switch self {
    case .usual: try await Fixtures.usual()
    case .interrupted: try await Fixtures.interrupted()
    case .dead: try await Fixtures.dead()
    case .failing: try await Fixtures.failing()
    case .empty:
      await Fixtures.report(try Fixtures.settings([], dns: false)) { request, _ in .answer(request) }
    case .openLoop: try await Self.run { $0.rate = 50 }
    case .objectives:
      try await Self.run { $0.objectives = try Objective.list("p50<1s,p99<1s,errors<1%,max<1ms,mean<1s") }
    case .connections:
      try await Self.run {
        $0.concurrency = 2
        $0.streams = 3
      }
    case .sampleLimit: try await Self.run(sampleLimit: 10) { _ in }
    case .drill: try await Self.drilled()
    }
  }

  /// Makes a run without failures. `change` changes its settings.
  private static func run(
    sampleLimit: Int = BenchRun.maximumSamples, _ change: (inout BenchSettings) throws -> Void
  ) async throws -> BenchReport {
    var settings = try Fixtures.settings()
    try change(&settings)
    let client = FakeBenchClient(choice: .success(Fixtures.first)) { request, _ in .answer(request) }
    let clients = Array(repeating: client, count: settings.concurrency)
    let run = BenchRun(settings, clients: clients, clock: client, sampleLimit: sampleLimit)
    return await run.report(Fixtures.context)
  }

  /// A run with two drills. In the first one, the client with the dead address tries this address in half of
  /// its calls. In the second one, no call of any client gets a response.
  private static func drilled() async throws -> BenchReport {
    var report = try await Fixtures.usual()
    let exclusion = Exclusion(code: "refused", reason: "connect: refused")
    let drill = Drill(live: [Fixtures.first], now: { 1_787_392_800_000_000 }) { addresses, count in
      (0..<count).map { number in
        Drill.Call(
          duration: .milliseconds(20 + number), isAffected: addresses.count > 1 && number < 5,
          isAnswered: true)
      }
    }
    let dead = Drill(live: [Fixtures.first], now: { 1_787_392_800_000_000 }) { _, count in
      (0..<count).map { _ in Drill.Call(duration: .seconds(1), isAffected: true, isAnswered: false) }
    }
    report.drills = [
      try #require(await drill.result(of: Fixtures.impostor, exclusion)),
      try #require(await dead.result(of: Fixtures.second, exclusion)),
    ]
    return report
  }
}

extension JSONValue {
  /// The names of an object's members.
  fileprivate var names: [String] {
    if case .object(let members) = self { members.map(\.name) } else { [] }
  }
}
