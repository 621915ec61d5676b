import NetOpt
import NetOptCore
import NetOptLocking
import NetOptStorm
import NetOptTestSupport

/// Sends requests at a fixed rate while one server after another fails for a while.
package struct Soak: Sendable {
  /// The time that a request may take.
  package static let deadline = Duration.seconds(5)

  private let plan: SoakPlan
  /// The number of requests per second.
  private let rate: Int
  private let site: Site
  private let clock = SystemTimeSource()

  private init(_ plan: SoakPlan, rate: Int, _ site: Site) {
    self.plan = plan
    self.rate = rate
    self.site = site
  }

  /// Performs a plan with servers of its own, and judges the result.
  ///
  /// - Parameters:
  ///   - rate: the number of requests per second. Each request starts when it is due, even if earlier
  ///     requests have not ended.
  ///   - mostP99: the maximum p99 of `SoakReport.inFaults`; `nil` for no limit.
  ///   - said: called with a description of each fault when it has ended.
  package static func perform(
    _ plan: SoakPlan, rate: Int, mostP99: Duration?, said: @escaping @Sendable (String) -> Void = { _ in }
  ) async throws -> SoakReport {
    let site = try await Site(isWired: false, origins: SoakPlan.servers)
    defer { site.stop() }
    return try await Soak(plan, rate: rate, site).report(mostP99, said)
  }

  /// Sends all requests of the plan, plays its faults beside them, and judges the result.
  private func report(
    _ mostP99: Duration?, _ said: @escaping @Sendable (String) -> Void
  ) async throws -> SoakReport {
    let lateness = try Lateness()
    let client = try NetOptClient(site.configuration())
    let caller = NetOptCaller(site: site, client: client, lateness: lateness, deadline: Self.deadline)
    let start = clock.now()
    let log = SoakLog()
    try await withThrowingTaskGroup { group in
      let whole = WholeServers(SoakPlan.servers)
      for server in 0..<SoakPlan.servers {
        group.addTask {
          for incident in plan.incidents where incident.server == server {
            let window = try await perform(incident, since: start, whole)
            log.windows.withLock { $0.append(window) }
            said("\(incident)")
          }
        }
      }
      let count = Int(plan.length.nanoseconds * Int64(rate) / 1_000_000_000)
      for number in 0..<count {
        let due = start + .nanoseconds(Int64(number) * 1_000_000_000 / Int64(rate))
        let rest = due - clock.now()
        if rest > .zero { try await Task.sleep(for: rest) }
        group.addTask {
          let ask = plan.ask(number)
          let call = try await caller.call("s\(number)", ask.traffic, ask.version)
          log.calls.withLock { $0.append(SoakJudge.Asked(ask: ask, call: call)) }
        }
      }
      try await group.waitForAll()
    }
    await client.shutdown()
    await lateness.stop()
    return SoakJudge(deadline: Self.deadline, mostP99: mostP99).report(
      log.calls.withLock { $0 }, windows: log.windows.withLock { $0 }, arrivals: try site.takeArrivals())
  }

  /// Waits for the start of an incident, makes its server fail, and returns when the server works again.
  ///
  /// - Parameters:
  ///   - start: the start of the soak.
  ///   - whole: the count of servers without a fault.
  /// - Returns: the fault and the time in which it was active.
  private func perform(
    _ incident: SoakPlan.Incident, since start: MonotonicInstant, _ whole: WholeServers
  ) async throws -> SoakJudge.Window {
    try await sleep(until: start + incident.start)
    // The plan always leaves one server without a fault, but the fault of another server may end late.
    try await wait(for: "another server to be whole") { whole.takeOne() }
    defer { whole.giveBack() }
    let origin = site.origins[incident.server]
    let began = clock.now()
    try await site.begin(incident.fault, at: origin)
    try await sleep(until: start + incident.end)
    try await site.end(incident.fault, at: origin)
    return SoakJudge.Window(fault: incident.fault, began: began, ended: clock.now())
  }

  private func sleep(until moment: MonotonicInstant) async throws {
    let rest = moment - clock.now()
    if rest > .zero { try await Task.sleep(for: rest) }
  }
}

/// What happened in a soak: the faults and the calls that have ended.
private final class SoakLog: Sendable {
  let windows = Locked<[SoakJudge.Window]>([])
  let calls = Locked<[SoakJudge.Asked]>([])
}

/// The number of servers without a fault ("whole" servers). It never falls below one.
private final class WholeServers: Sendable {
  private let count: Locked<Int>

  init(_ count: Int) { self.count = Locked(count) }

  /// Reduces the number by one, unless only one server is without a fault. Call this before a server fails.
  ///
  /// - Returns: whether the number was reduced. If false, the server must not fail now.
  func takeOne() -> Bool {
    count.withLock { count in
      guard count > 1 else { return false }
      count -= 1
      return true
    }
  }

  /// Increases the number by one. Call this when the fault of a server has ended.
  func giveBack() { count.withLock { $0 += 1 } }
}
