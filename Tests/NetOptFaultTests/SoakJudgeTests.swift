import FaultMatrix
import NetOptCore
import Testing

/// Checks each rule of the soak (docs/reliability.md) with a call that breaks the rule and with a call that
/// does not.
@Suite struct SoakJudgeTests {
  /// The moment this many milliseconds after the zero of the clock.
  private func moment(_ milliseconds: Int64) -> MonotonicInstant {
    MonotonicInstant(nanoseconds: milliseconds * 1_000_000)
  }

  /// A request of the plan and its call. `began` is the moment of the start in milliseconds, `took` is the
  /// duration in milliseconds. By default, the call begins while the fault of `report` is active.
  private func asked(
    _ traffic: Traffic = .get, _ outcome: Call.Outcome = .answered(by: "A"), began: Int64 = 1100,
    took: Int64 = 5
  ) -> SoakJudge.Asked {
    SoakJudge.Asked(
      ask: SoakPlan.Ask(traffic: traffic, version: .http2),
      call: Call(id: "1", began: moment(began), ended: moment(began + took), outcome: outcome))
  }

  /// Returns the report on one call, with a deadline of 1 s. One fault is active from 1.0 s to 2.5 s. The
  /// report has the violation `idle` if the call does not count in the figures: it began outside of the
  /// seconds with the fault, its request must not be repeated, or its failure is excused.
  ///
  /// - Parameters:
  ///   - fault: the name of the fault.
  ///   - log: the log of the servers (`Arrivals`). `1 arrive 1` says that a server began to process the
  ///     request with the id 1; `1 refuse 1` says that a server refused it.
  ///   - mostP99: the maximum p99 in the seconds with the fault; `nil` for no limit.
  private func report(
    _ asked: SoakJudge.Asked, _ fault: String = "refused", log: String = "", mostP99: Duration? = nil
  ) throws -> SoakReport {
    let fault = try #require(Fault.all.first { $0.name == fault })
    return SoakJudge(deadline: .milliseconds(1000), mostP99: mostP99).report(
      [asked], windows: [SoakJudge.Window(fault: fault, began: moment(1000), ended: moment(2500))],
      arrivals: Arrivals(log: log))
  }

  /// The outcome of a failed call whose error has this message.
  private func failed(_ message: String, hadHead: Bool = false, mayBeWritten: Bool = false) -> Call.Outcome {
    .failed(Call.Failure(code: "x", message: message, hadHead: hadHead, mayBeWritten: mayBeWritten))
  }

  private func kinds(_ report: SoakReport) -> [CellVerdict.Violation.Kind] { report.violations.map(\.kind) }

  @Test("a right response in time breaks no rule")
  func rightAnswer() throws {
    #expect(try report(asked()).violations.isEmpty)
  }

  @Test("the judge reports any failure of a repeatable request")
  func failure() throws {
    #expect(try kinds(report(asked(.get, failed("refused")))).contains(.failed))
    #expect(try kinds(report(asked(.down, failed("refused", mayBeWritten: true)))).contains(.failed))
    #expect(try kinds(report(asked(.keyedPost, failed("refused", mayBeWritten: true)))).contains(.failed))
  }

  @Test("the judge excuses a failed POST only when its effect is unknown")
  func unknownEffect() throws {
    for traffic in [Traffic.post, .up] {
      #expect(try kinds(report(asked(traffic, failed("refused")))) == [.failed, .idle])
      #expect(try kinds(report(asked(traffic, failed("refused", mayBeWritten: true)))) == [.idle])
      let refused = failed("refused", mayBeWritten: true)
      #expect(try kinds(report(asked(traffic, refused), log: "1 refuse 1\n")).contains(.failed))
    }
  }

  @Test("the judge excuses a broken response only for faults that break responses")
  func broken() throws {
    let cut = asked(.get, failed("cut", hadHead: true))
    #expect(try kinds(report(cut, "cut body")) == [.idle])
    #expect(try kinds(report(cut, "silent TCP")).contains(.failed))
  }

  @Test("the judge reports a failure that names no cause of a fault active during the call")
  func cause() throws {
    // The message has none of the words that name the fault.
    let odd = failed("something went wrong", mayBeWritten: true)
    #expect(try kinds(report(asked(.post, odd))).contains(.cause))
    // The call begins so long after the end of the fault that the fault cannot be its cause.
    let lateOne = asked(.post, failed("refused", mayBeWritten: true), began: 9000)
    #expect(try kinds(report(lateOne)).contains(.cause))
  }

  @Test("the judge reports a wrong response, a doubled POST and a call past its deadline")
  func others() throws {
    #expect(try kinds(report(asked(.get, .wrong("another one's")))) == [.wrongAnswer])
    #expect(try kinds(report(asked(.post), log: "1 arrive 1\n2 arrive 1\n")).contains(.doubled))
    #expect(try report(asked(.get), log: "1 arrive 1\n2 arrive 1\n").violations.isEmpty)
    #expect(try kinds(report(asked(took: 1051))) == [.late])
    #expect(try report(asked(took: 1050)).violations.isEmpty)
  }

  @Test("the limit of the p99 applies only to seconds in which a fault was active")
  func slow() throws {
    let most = Duration.milliseconds(600)
    #expect(try kinds(report(asked(took: 601), mostP99: most)) == [.late])
    #expect(try report(asked(took: 600), mostP99: most).violations.isEmpty)
    // The call begins in the second in which the fault ended.
    #expect(try kinds(report(asked(began: 2900, took: 601), mostP99: most)) == [.late])
    // The call begins in the next second.
    #expect(try kinds(report(asked(began: 3000, took: 601), mostP99: most)) == [.idle])
  }
}
