package import NetOptCore

/// Judges what happened in a cell of the fault matrix. It reads no clock and contacts no server.
package struct CellJudge {
  /// How much later than its deadline a call may end, in addition to its `allowance`.
  private static let grace = Duration.milliseconds(50)

  private let fault: Fault
  private let traffic: Traffic
  private let deadline: Duration

  /// - Parameter deadline: the time that a call may take, from its start.
  package init(_ fault: Fault, _ traffic: Traffic, deadline: Duration) {
    self.fault = fault
    self.traffic = traffic
    self.deadline = deadline
  }

  /// Judges the calls that the fault may have affected. The caller sets `failoverTime` and `recoveryTime` of
  /// the verdict.
  ///
  /// - Parameters:
  ///   - netopt: netopt's calls.
  ///   - curl: curl's calls in the same cell.
  ///   - curlCompletes: whether curl completed a call that began and ended while the fault was active.
  ///   - arrivals: the requests of netopt that the servers received.
  package func verdict(netopt: [Call], curl: [Call], curlCompletes: Bool, arrivals: Arrivals) -> CellVerdict {
    var verdict = CellVerdict()
    verdict.netopt = CellVerdict.Figures(netopt)
    verdict.curl = CellVerdict.Figures(curl)
    if netopt.isEmpty || curl.isEmpty {
      add(&verdict, .idle, "\(netopt.count) calls of netopt, \(curl.count) of curl")
    }
    for call in netopt {
      if call.time > deadline + Self.grace + call.allowance {
        add(
          &verdict, .late,
          "\(call.id) took \(call.time), with an allowance of \(call.allowance): \(call.outcome)")
      }
      if case .wrong(let text) = call.outcome { add(&verdict, .wrongAnswer, "\(call.id): \(text)") }
      if !traffic.mayBeRepeated, arrivals.processed[call.id, default: 0] > 1 {
        verdict.doubled += 1
        add(
          &verdict, .doubled, "\(call.id) arrived \(arrivals.processed[call.id] ?? 0) times: \(call.outcome)")
      }
      guard let failure = call.failure else { continue }
      switch failure.excuse(of: call.id, traffic, arrivals, breaksAnswers: fault.breaksAnswers) {
      case .unrepeatable: verdict.unrepeatable += 1
      case .broken: verdict.broken += 1
      case nil:
        if curlCompletes { add(&verdict, .failed, "\(call.id): \(failure.code): \(failure.message)") }
      }
      if !failure.names(oneOf: fault.causes) {
        add(&verdict, .cause, "\(call.id): \(failure.code): \(failure.message)")
      }
    }
    return verdict
  }

  /// How long the client took to leave a faulty server: the time from the start of the fault to the start of
  /// the first call from which on other servers than `victim` answered all calls. `nil` when no other server
  /// answered the last call.
  ///
  /// - Parameters:
  ///   - calls: the client's calls.
  ///   - victim: the name of the faulty server.
  ///   - start: the start of the fault. Earlier calls do not count.
  package func failoverTime(_ calls: [Call], of victim: String, since start: MonotonicInstant) -> Duration? {
    let ordered = calls.filter { $0.began >= start }.sorted { $0.began < $1.began }
    let elsewhere = ordered.reversed().prefix { call in
      if case .answered(let server?) = call.outcome { server != victim } else { false }
    }
    return elsewhere.last.map { $0.began - start }
  }

  private func add(_ verdict: inout CellVerdict, _ kind: CellVerdict.Violation.Kind, _ text: String) {
    verdict.violations.append(CellVerdict.Violation(kind: kind, text: text))
  }
}
