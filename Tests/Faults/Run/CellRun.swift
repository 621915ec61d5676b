import NetOpt
import NetOptCore
import NetOptStorm
import NetOptTestSupport

/// Runs one cell: netopt sends requests before, during and after the fault, then curl sends requests during
/// the same fault.
struct CellRun: Sendable {
  /// The durations of a run.
  package struct Timing: Sendable {
    /// The minimum duration of the fault.
    var fault: Duration
    /// How long to wait, after the fault, until the formerly faulty server answers a call; zero to skip this
    /// check.
    var recoveryLimit: Duration

    /// The pause of each lane between two requests, in cells with concurrent requests.
    var rest: Duration

    /// The durations for the tests.
    static let short = Timing(fault: .milliseconds(300), recoveryLimit: .zero, rest: .milliseconds(100))
    /// The durations for the table.
    static let long = Timing(fault: .seconds(3), recoveryLimit: .seconds(8), rest: .milliseconds(400))
  }

  let cell: Cell
  /// The index of the cell in the run. The ids of the cell's requests begin with it, so that they differ from
  /// the ids of other cells.
  let number: Int
  /// The servers. Other cells use them before and after this cell.
  let site: Site
  let timing: Timing
  /// Measures how late this machine is, for `Call.allowance`.
  let lateness: Lateness

  private let clock = SystemTimeSource()

  /// The time in which the fault was active.
  private struct Window {
    /// A moment just before the fault began.
    let start: MonotonicInstant
    /// From this moment on, every new request meets the fault. For a restart, which is over as soon as it has
    /// begun, this is `start`.
    let activeFrom: MonotonicInstant
    /// A moment just before the fault ended.
    let end: MonotonicInstant

    /// Whether the fault may have affected a call.
    func overlaps(_ call: Call) -> Bool { call.ended >= start && call.began <= end }
    /// Whether the fault was active during the whole call.
    func covers(_ call: Call) -> Bool { call.began >= activeFrom && call.ended <= end }
  }

  /// The pause of each lane between two requests. 400 ms is longer than the 300 ms after which the wire drops
  /// the packets of an idle connection (`wire.py`).
  private var pause: Duration {
    if cell.fault.needsIdleConnections { return .milliseconds(400) }
    return cell.concurrency > 1 ? timing.rest : .milliseconds(30)
  }

  /// Runs the cell, and judges what happened.
  func verdict() async throws -> CellVerdict {
    _ = try site.takeArrivals()
    let client = try NetOptClient(site.configuration(for: cell.fault))
    let caller = NetOptCaller(site: site, client: client, lateness: lateness, deadline: .deadline)
    let load = Load(pause: pause)
    async let running: Void = load.run(NetOptLanes(cell: cell, caller: caller), label: "\(number)n")
    try await wait(for: "answers before the fault") { load.ended.count >= cell.concurrency * 2 }
    let victim = site.origins.first { $0.name == Self.lastServer(load.ended) } ?? site.origins[0]

    let window = try await holdFault(victim, load, cell.concurrency)
    let recoveryTime = try await waitForReturn(of: victim, since: window.end, load)
    load.stop()
    try await running
    await client.shutdown()
    let arrivals = try site.takeArrivals()

    let netopt = load.ended.filter(window.overlaps)
    let (curl, completes) = try await curlCalls(victim)
    let judge = CellJudge(cell.fault, cell.traffic, deadline: .deadline)
    var verdict = judge.verdict(netopt: netopt, curl: curl, curlCompletes: completes, arrivals: arrivals)
    if cell.fault.hasVictim {
      verdict.failoverTime = judge.failoverTime(netopt, of: victim.name, since: window.start)
      verdict.recoveryTime = recoveryTime
    }
    return verdict
  }

  /// Begins the fault, keeps it active, and ends it. The fault lasts for at least `timing.fault`, and until
  /// `count` calls that began during the fault have ended.
  ///
  /// - Parameters:
  ///   - victim: the server that gets the fault, if a single server has it.
  ///   - load: the source of the calls.
  private func holdFault(_ victim: FaultyOrigin, _ load: Load, _ count: Int) async throws -> Window {
    let start = clock.now()
    try await site.begin(cell.fault, at: victim)
    let activeFrom = cell.fault.isOverWhenBegun ? start : clock.now()
    let rest = timing.fault - (clock.now() - start)
    if rest > .zero { try await Task.sleep(for: rest) }
    try await wait(for: "calls that met the fault") { load.ended.count { $0.began >= activeFrom } >= count }
    let end = clock.now()
    try await site.end(cell.fault, at: victim)
    return Window(start: start, activeFrom: activeFrom, end: end)
  }

  /// Lets curl send requests while the fault is active a second time.
  ///
  /// - Returns: the calls that the fault may have affected, and whether curl completed a call that began and
  ///   ended while the fault was active.
  private func curlCalls(_ victim: FaultyOrigin) async throws -> ([Call], completes: Bool) {
    let load = Load(pause: pause)
    async let running: Void = load.run(
      CurlCaller(cell: cell, site: site, victim: victim), label: "\(number)c")
    let window = try await holdFault(victim, load, cell.concurrency)
    load.stop()
    try await running
    let calls = load.ended.filter(window.overlaps)
    return (calls, calls.contains { window.covers($0) && $0.isAnswered })
  }

  /// Waits until the victim has answered a call that began after the fault.
  ///
  /// - Returns: the time from the end of the fault to the end of this call; `nil` when the fault has no
  ///   victim, and when there is no such call within `timing.recoveryLimit`.
  private func waitForReturn(
    of victim: FaultyOrigin, since end: MonotonicInstant, _ load: Load
  ) async throws -> Duration? {
    guard cell.fault.hasVictim, timing.recoveryLimit > .zero else { return nil }
    while clock.now() - end < timing.recoveryLimit {
      let answered = load.ended.filter { $0.began >= end && $0.outcome == .answered(by: victim.name) }.map(
        \.ended
      ).min()
      if let answered { return answered - end }
      try await Task.sleep(for: .milliseconds(10))
    }
    return nil
  }

  /// The name of the server that answered most of the last ten calls; `nil` when no server answered any.
  private static func lastServer(_ calls: [Call]) -> String? {
    let servers = calls.suffix(10).compactMap { call -> String? in
      if case .answered(let server) = call.outcome { server } else { nil }
    }
    return Dictionary(grouping: servers) { $0 }.max { $0.value.count < $1.value.count }?.key
  }
}
