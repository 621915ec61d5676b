import FoundationEssentials
import Glibc
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptRouting

/// No time from a transport, no date and no moment of a clock makes the routing code trap. The tests run in
/// child processes, because a trap would end the test process. Each child process notes its input before it
/// uses it (`LastNote`), so a failed test shows the input that caused the trap.
@Suite struct ExtremeTimesTests {
  /// The kinds of failure that random legs have.
  private static let failures: [LegFailure.Kind] = [
    .refused, .connectTimeout, .reset, .certificateExpired, .unreachable, .resolve, .other,
  ]

  /// Makes a random leg. Its times are extreme or a few milliseconds, and need not be consistent with each
  /// other.
  private static func leg(_ address: IPAddress, _ random: inout SplitMix64) -> RouteReport.Leg {
    func time() -> Duration {
      random.element(of: ExtremeNumbers.durations + [.milliseconds(5), .milliseconds(20)])
    }
    let outcome = random.element(of: [RouteReport.Outcome.won, .lost, .failed, .cancelled])
    return RouteReport.Leg(
      address: address, source: .list, started: time(), connected: random.isOne(in: 4) ? nil : time(),
      secured: random.isOne(in: 4) ? nil : time(), ended: time(), outcome: outcome,
      failure: random.isOne(in: 2) ? LegFailure(random.element(of: failures), "x") : nil,
      reused: random.isOne(in: 3))
  }

  /// Draws the outcome of a call. A time in it is extreme. `nil` means that only the legs of the call are
  /// known.
  private static func outcome(_ random: inout SplitMix64) -> CallOutcome? {
    let time = random.element(of: ExtremeNumbers.durations)
    return random.element(of: [
      nil, .answered(wait: time), .answered(wait: time), .unavailable(status: 503, retryAfter: time), .broke,
      .silent,
      .unknown,
    ])
  }

  @Test(
    "a planner that learns extreme times at extreme moments makes plans", arguments: SelectionPolicy.allCases)
  func everyTime(_ policy: SelectionPolicy) async throws {
    let note = try LastNote()
    await #expect(processExitsWith: .success) {
      [path = note.path as String, name = policy.rawValue as String] in
      // SIGALRM ends a process that hangs.
      alarm(300)
      let note = LastNote(path)
      let policy = try #require(SelectionPolicy(rawValue: name))
      let moments = ExtremeNumbers.moments + [.at(0), .at(1), .at(1000)]
      for seed in 1...100 as ClosedRange<UInt64> {
        var random = SplitMix64(seed: seed)
        let addresses = (0..<3).map { IPAddress(v4: 0xc000_0200 + UInt32($0)) }
        var scene = Scene(addresses, configuration: RoutingConfiguration(policy: policy), seed: seed)
        note.write("seed \(seed)")
        for step in 0..<60 {
          // Most steps are at ordinary moments. Otherwise the planner would never remember anything.
          scene.now = random.isOne(in: 10) ? random.element(of: moments) : .at(Double(step))
          let plan = scene.plan()
          scene.planner.began(plan)
          let report = RouteReport(plan: plan, legs: addresses.map { Self.leg($0, &random) })
          let begun = random.isOne(in: 3) ? nil : random.element(of: moments)
          scene.planner.record(report, outcome: Self.outcome(&random), from: begun, at: scene.now)
          let connect = random.element(of: ExtremeNumbers.durations)
          let tls = random.element(of: ExtremeNumbers.durations)
          scene.planner.record(
            probe: .success(ConnectReport(connect: connect, tls: tls)), of: random.element(of: addresses),
            for: scene.origin, at: scene.now)
          scene.planner.record(roundTrip: connect, of: addresses[0], for: scene.origin, at: scene.now)
          _ = scene.planner.dueProbes(at: scene.now)
          _ = scene.planner.nextProbe(after: scene.now)
          scene.planner.ended(plan)
          for status in scene.planner.status(of: scene.origin, at: scene.now) { _ = "\(status)" }
          _ = report.legs.map { $0.seen(after: random.element(of: ExtremeNumbers.durations)) }
        }
        let history = scene.planner.history(at: scene.now, date: today)
        _ = scene.planner.adopt(
          history, at: scene.now, date: today.addingTimeInterval(.greatestFiniteMagnitude))
      }
      note.write("the end")
    }
    #expect(note.text == "the end")
  }

  @Test("a race with extreme staggers at extreme moments does not trap")
  func everyStagger() async throws {
    let note = try LastNote()
    await #expect(processExitsWith: .success) { [path = note.path as String] in
      alarm(300)
      let note = LastNote(path)
      for seed in 1...500 as ClosedRange<UInt64> {
        note.write("seed \(seed)")
        var random = SplitMix64(seed: seed)
        let legs = (0..<4).map {
          RoutePlan.Leg(
            .address(IPAddress(v4: UInt32($0 + 1))), source: .list,
            stagger: random.element(of: ExtremeNumbers.durations))
        }
        var race = Race(
          legs, startsTwo: random.isOne(in: 2), multiplexes: random.isOne(in: 2), mayBeRepeated: true)
        var step = race.advance()
        for _ in 0..<40 {
          let now = random.element(of: ExtremeNumbers.moments)
          switch step {
          case .start(let leg): step = random.isOne(in: 2) ? race.opened(leg, at: now) : race.failed(leg)
          case .wait:
            step =
              random.isOne(in: 2) ? race.timeIsUp(at: now, connected: random.isOne(in: 2)) : race.advance()
          case .exhausted: break
          }
        }
      }
      note.write("the end")
    }
    #expect(note.text == "the end")
  }

  @Test("the retry budget, the retry policy and the latency quantile accept extreme times")
  func everyBudget() async throws {
    let note = try LastNote()
    await #expect(processExitsWith: .success) { [path = note.path as String] in
      alarm(300)
      let note = LastNote(path)
      let request = try NetOptRequest(.get, "https://a.example/")
      for seed in 1...400 as ClosedRange<UInt64> {
        var random = SplitMix64(seed: seed)
        var budget = RetryBudget(at: random.element(of: ExtremeNumbers.moments))
        var policy = RetryPolicy(seed: seed)
        var latencies = LatencyQuantile()
        note.write("seed \(seed)")
        for step in 0..<30 {
          let now = random.element(of: ExtremeNumbers.moments + [.at(Double(step))])
          budget.callBegins(at: now)
          latencies.add(random.element(of: ExtremeNumbers.durations))
          _ = latencies.value
          var request = request
          request.options.maxAttempts = random.element(of: ExtremeNumbers.integers)
          let head = ResponseHead(
            status: 503, fields: ["Retry-After": random.element(of: ExtremeNumbers.numerals)])
          let route = RouteReport(
            plan: RoutePlan(origin: request.url.origin, policy: .fastest, legs: [.init(.dns, source: .dns)]),
            legs: [])
          let response = NetOptResponse(
            url: request.url, head: head, body: ResponseBody([]), route: route, attempts: 1)
          let decision = policy.decide(
            after: .success(response), of: request, attempts: random.element(of: ExtremeNumbers.integers),
            at: now, until: random.isOne(in: 2) ? nil : random.element(of: ExtremeNumbers.moments),
            shortest: random.element(of: ExtremeNumbers.durations), wall: today, budget: &budget)
          if case .giveUp(let reason) = decision { _ = reason.description }
        }
      }
      note.write("the end")
    }
    #expect(note.text == "the end")
  }
}
