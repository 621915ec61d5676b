import FaultMatrix
import NetOptCore
import Testing

/// Checks each rule of the fault matrix (docs/reliability.md) with calls that break the rule and with calls
/// that do not.
@Suite struct CellJudgeTests {
  /// A fault that does not break off responses that have begun.
  private static let refused = fault("refused")
  /// A fault that breaks off responses that have begun (`Fault.breaksAnswers`).
  private static let cutBody = fault("cut body")

  /// The fault of the matrix with this name.
  private static func fault(_ name: String) -> Fault { Fault.all.first { $0.name == name } ?? Fault.all[0] }

  /// The moment this many milliseconds after the zero of the clock.
  private func moment(_ milliseconds: Int64) -> MonotonicInstant {
    MonotonicInstant(nanoseconds: milliseconds * 1_000_000)
  }

  /// A call. `began` is the moment of its start in milliseconds, `took` is its duration in milliseconds.
  private func call(_ id: String, _ outcome: Call.Outcome, began: Int64 = 0, took: Int64 = 5) -> Call {
    Call(id: id, began: moment(began), ended: moment(began + took), outcome: outcome)
  }

  /// The outcome of a failed call whose error has this message.
  private func failed(_ message: String, hadHead: Bool = false, mayBeWritten: Bool = false) -> Call.Outcome {
    .failed(Call.Failure(code: "x", message: message, hadHead: hadHead, mayBeWritten: mayBeWritten))
  }

  /// The verdict on one call of netopt with the id 1 and one call of curl, in a cell whose deadline is 1 s.
  ///
  /// - Parameters:
  ///   - netopt: the outcome of netopt's call.
  ///   - curl: the outcome of curl's call; by default, curl completes it.
  ///   - log: the log of the servers (`Arrivals`). `1 arrive 1` says that a server began to process the
  ///     request with the id 1; `1 refuse 1` says that a server refused it.
  ///   - took: the duration of netopt's call in milliseconds.
  private func verdict(
    _ fault: Fault = refused, _ traffic: Traffic = .get, netopt: Call.Outcome,
    curl: Call.Outcome = .answered(by: nil),
    log: String = "", took: Int64 = 5
  ) -> CellVerdict {
    CellJudge(fault, traffic, deadline: .milliseconds(1000)).verdict(
      netopt: [call("1", netopt, took: took)], curl: [call("c", curl)],
      curlCompletes: curl == .answered(by: nil), arrivals: Arrivals(log: log))
  }

  private func kinds(_ verdict: CellVerdict) -> [CellVerdict.Violation.Kind] {
    verdict.violations.map(\.kind)
  }

  @Test("a right response breaks no rule")
  func rightAnswer() {
    let verdict = verdict(netopt: .answered(by: "B"), log: "1 arrive 1\n")
    #expect(verdict.violations.isEmpty)
    #expect(verdict.netopt.failed == 0)
  }

  @Test("the judge counts a failure only when curl completes a request")
  func failureBesideCurl() {
    #expect(kinds(verdict(netopt: failed("refused"))) == [.failed])
    #expect(verdict(netopt: failed("refused"), curl: failed("refused")).violations.isEmpty)
  }

  @Test("the judge excuses a failed non-repeatable request that was written, unless a server refused it")
  func unrepeatable() {
    let written = failed("refused", mayBeWritten: true)
    for traffic in [Traffic.post, .up] {
      #expect(verdict(Self.refused, traffic, netopt: written).unrepeatable == 1)
      #expect(verdict(Self.refused, traffic, netopt: written).violations.isEmpty)
      #expect(
        verdict(Self.refused, traffic, netopt: failed("refused"), log: "1 arrive 1\n").unrepeatable == 1)
      #expect(kinds(verdict(Self.refused, traffic, netopt: failed("refused"))) == [.failed])
      #expect(kinds(verdict(Self.refused, traffic, netopt: written, log: "1 refuse 1\n")) == [.failed])
    }
    for traffic in [Traffic.get, .keyedPost, .down] {
      #expect(kinds(verdict(Self.refused, traffic, netopt: written, log: "1 arrive 1\n")) == [.failed])
    }
  }

  @Test("the judge excuses a broken response only for faults that break responses")
  func brokenAnswers() {
    let begun = failed("closed", hadHead: true)
    #expect(verdict(Self.cutBody, netopt: begun).broken == 1)
    #expect(verdict(Self.cutBody, netopt: begun).violations.isEmpty)
    #expect(kinds(verdict(Self.cutBody, netopt: failed("closed"))) == [.failed])
    #expect(kinds(verdict(Self.refused, netopt: begun)) == [.failed])
  }

  @Test("the judge reports a non-repeatable request that was processed twice")
  func doubled() {
    let twice = "1 arrive 1\n2 arrive 1\n"
    for traffic in Traffic.allCases {
      let verdict = verdict(Self.refused, traffic, netopt: .answered(by: "B"), log: twice)
      #expect(kinds(verdict) == (traffic.mayBeRepeated ? [] : [.doubled]))
    }
    #expect(
      verdict(Self.refused, .post, netopt: .answered(by: "B"), log: "1 refuse 1\n2 arrive 1\n").violations
        .isEmpty)
  }

  @Test("the judge reports a failure that does not name its cause, even an excused one")
  func causes() {
    #expect(kinds(verdict(netopt: failed("libcurl failed"), curl: failed(""))) == [.cause])
    #expect(kinds(verdict(Self.cutBody, netopt: failed("odd", hadHead: true))) == [.cause])
  }

  @Test("the judge allows a call 50 ms and the machine's allowance after its deadline")
  func deadline() {
    #expect(verdict(netopt: .answered(by: "B"), took: 1050).violations.isEmpty)
    #expect(kinds(verdict(netopt: .answered(by: "B"), took: 1051)) == [.late])
    let judge = CellJudge(Self.refused, .get, deadline: .milliseconds(1000))
    let late = Call(
      id: "1", began: moment(0), ended: moment(1060), outcome: .answered(by: "B"),
      allowance: .milliseconds(10))
    let verdict = judge.verdict(
      netopt: [late], curl: [call("c", .answered(by: nil))], curlCompletes: true, arrivals: Arrivals())
    #expect(verdict.violations.isEmpty)
  }

  @Test("the judge reports a wrong response and a cell without calls")
  func wrongAndIdle() {
    #expect(kinds(verdict(netopt: .wrong("200 2"))) == [.wrongAnswer])
    let judge = CellJudge(Self.refused, .get, deadline: .milliseconds(1000))
    #expect(kinds(judge.verdict(netopt: [], curl: [], curlCompletes: false, arrivals: Arrivals())) == [.idle])
  }

  @Test("a server counts as left at the start of the first call after which others answer all calls")
  func leaving() {
    // The server A has a fault from 100 ms on. Call 1 began before, and call 3 failed. From call 4 on, which
    // began at 140 ms, B answers.
    let judge = CellJudge(Self.refused, .get, deadline: .milliseconds(1000))
    let calls = [
      call("1", .answered(by: "B"), began: 90), call("2", .answered(by: "A"), began: 110),
      call("3", failed("refused"), began: 120), call("4", .answered(by: "B"), began: 140),
      call("5", .answered(by: "B"), began: 150),
    ]
    #expect(judge.failoverTime(calls, of: "A", since: moment(100)) == .milliseconds(40))
    #expect(judge.failoverTime(Array(calls.prefix(3)), of: "A", since: moment(100)) == nil)
  }

  @Test("the figures are the calls, the failures, the median and the 99th percentile")
  func figures() {
    let judge = CellJudge(Self.refused, .get, deadline: .milliseconds(1000))
    let calls = (1...200).map {
      call("\($0)", $0 == 1 ? failed("refused") : .answered(by: "B"), took: Int64($0))
    }
    let figures = judge.verdict(
      netopt: calls, curl: [call("c", failed("refused"))], curlCompletes: false, arrivals: Arrivals()
    ).netopt
    #expect(figures.calls == 200)
    #expect(figures.failed == 1)
    #expect(figures.p50 == .milliseconds(101))
    #expect(figures.p99 == .milliseconds(199))
  }
}
