package import NetOptCore

/// Judges what happened in a soak. It reads no clock and contacts no server.
package struct SoakJudge: Sendable {
  /// A fault and the time in which it was active.
  package struct Window: Sendable {
    package let fault: Fault
    /// A moment just before the fault began.
    package let began: MonotonicInstant
    /// A moment just after the fault ended.
    package let ended: MonotonicInstant

    package init(fault: Fault, began: MonotonicInstant, ended: MonotonicInstant) {
      self.fault = fault
      self.began = began
      self.ended = ended
    }
  }

  /// A request of the plan, and the result of the call that sent it.
  package struct Asked: Sendable {
    package let ask: SoakPlan.Ask
    package let call: Call

    package init(ask: SoakPlan.Ask, call: Call) {
      self.ask = ask
      self.call = call
    }
  }

  /// How much later than its deadline a call may end, in addition to its `allowance`.
  private static let grace = Duration.milliseconds(50)
  /// A second in nanoseconds.
  private static let second: Int64 = 1_000_000_000

  private let deadline: Duration
  /// The maximum p99 of `SoakReport.inFaults`; `nil` for no limit.
  private let mostP99: Duration?

  /// - Parameters:
  ///   - deadline: the time that a call may take, from its start.
  ///   - mostP99: the maximum p99 of `SoakReport.inFaults`; `nil` for no limit.
  package init(deadline: Duration, mostP99: Duration?) {
    self.deadline = deadline
    self.mostP99 = mostP99
  }

  /// Judges all calls.
  ///
  /// - Parameters:
  ///   - windows: the faults with their times. At any time at least one server had no fault.
  ///   - arrivals: the requests that the servers received.
  package func report(_ calls: [Asked], windows: [Window], arrivals: Arrivals) -> SoakReport {
    var report = SoakReport()
    let faulty = Self.seconds(of: windows)
    var inFaults: [Call] = []
    var elsewhere: [Call] = []
    for asked in calls {
      let call = asked.call
      let excuse = judge(asked, windows, arrivals, &report)
      guard asked.ask.traffic.mayBeRepeated, excuse == nil else { continue }
      if faulty.contains(call.began.nanoseconds / Self.second) {
        inFaults.append(call)
      } else {
        elsewhere.append(call)
      }
    }
    report.inFaults = CellVerdict.Figures(inFaults)
    report.elsewhere = CellVerdict.Figures(elsewhere)
    if let mostP99, report.inFaults.p99 > mostP99 {
      report.add(.late, "p99 of \(report.inFaults.p99) in seconds with a fault; \(mostP99) at most")
    }
    if inFaults.isEmpty { report.add(.idle, "no request met a second with a fault") }
    return report
  }

  /// Judges one call, and adds the call and its violations to the report.
  ///
  /// - Returns: why the failure of the call does not count; `nil` when it counts, and when the call did not
  ///   fail.
  private func judge(
    _ asked: Asked, _ windows: [Window], _ arrivals: Arrivals, _ report: inout SoakReport
  ) -> Excuse? {
    let (call, traffic) = (asked.call, asked.ask.traffic)
    report.rows[traffic, default: SoakReport.Row()].calls.append(call)
    if call.time > deadline + Self.grace + call.allowance {
      report.add(
        .late, "\(call.id) took \(call.time), with an allowance of \(call.allowance): \(call.outcome)")
    }
    if case .wrong(let text) = call.outcome { report.add(.wrongAnswer, "\(call.id): \(text)") }
    let times = arrivals.processed[call.id, default: 0]
    if !traffic.mayBeRepeated, times > 1 {
      report.rows[traffic]?.doubled += 1
      report.add(.doubled, "\(call.id) arrived \(times) times: \(call.outcome)")
    }
    guard let failure = call.failure else { return nil }
    // A call may fail because of a fault that has ended, because clients notice some faults late. Such a call
    // began at most one `deadline` after the end of the fault.
    let met = windows.filter { $0.began <= call.ended && $0.ended + deadline >= call.began }
    let excuse = failure.excuse(
      of: call.id, traffic, arrivals, breaksAnswers: met.contains { $0.fault.breaksAnswers })
    let text = "\(call.id), \(traffic.rawValue): \(failure.code): \(failure.message)"
    switch excuse {
    case .unrepeatable: report.rows[traffic]?.unrepeatable += 1
    case .broken: report.rows[traffic]?.broken += 1
    case nil: report.add(.failed, text + "; faults: \(met.map(\.fault.name))")
    }
    if !failure.names(oneOf: met.flatMap(\.fault.causes)) { report.add(.cause, text) }
    return excuse
  }

  /// The seconds in which a fault was active. A second is the number of whole seconds on the monotonic clock.
  private static func seconds(of windows: [Window]) -> Set<Int64> {
    Set(windows.flatMap { $0.began.nanoseconds / second...$0.ended.nanoseconds / second })
  }
}
