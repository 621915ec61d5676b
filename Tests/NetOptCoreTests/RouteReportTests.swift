import NetOptCore
import Testing

@Suite struct RouteReportTests {
  typealias Outcome = RouteReport.Outcome
  typealias Fallback = RouteReport.Fallback

  private let address = IPAddress(v4: 0x0a00_0001)

  /// Returns the report of a leg to `address`. All its times are zero.
  private func leg(_ source: AddressSource, _ outcome: Outcome) -> RouteReport.Leg {
    RouteReport.Leg(address: address, source: source, started: .zero, ended: .zero, outcome: outcome)
  }

  /// Returns the report of a call whose race started these legs.
  ///
  /// - Parameters:
  ///   - directOff: why direct mode is off; `nil` if it is on.
  ///   - hasCandidates: whether the policy considered an endpoint of the list.
  ///   - noneUsable: why no endpoint of the list is usable; `nil` if one is.
  private func report(
    _ legs: [(AddressSource, Outcome)], directOff: RoutePlan.DirectOff? = nil, hasCandidates: Bool = true,
    noneUsable: Fallback? = nil
  ) -> RouteReport {
    let plan = RoutePlan(
      origin: Origin(.https, host: "a.test"), policy: .fastest, directOff: directOff,
      candidates: hasCandidates ? [.init(address, score: nil, source: .list)] : [],
      legs: [.init(.dns, source: .dns)], noneUsable: noneUsable)
    return RouteReport(plan: plan, legs: legs.map { leg($0.0, $0.1) })
  }

  /// The source and the outcome of each leg, the index of the leg that won, and the `source` and the
  /// `fallback` of the report.
  @Test(
    "a report names the leg that won, the address's source and the reason for using DNS",
    arguments: [
      ([], nil, .dns, nil),
      ([(.list, .won)], 0, .list, nil),
      ([(.list, .failed), (.list, .won)], 1, .list, nil),
      ([(.list, .won), (.dns, .cancelled)], 0, .list, nil),
      ([(.list, .won), (.dns, .lost)], 0, .list, nil),
      ([(.list, .failed)], nil, .list, nil),
      ([(.list, .cancelled)], nil, .list, nil),
      ([(.list, .failed), (.dns, .won)], 1, .dns, .allFailed),
      ([(.list, .failed), (.list, .failed), (.dns, .failed), (.dns, .won)], 3, .dns, .allFailed),
      ([(.list, .failed), (.dns, .failed)], nil, .dns, .allFailed),
      ([(.list, .failed), (.dns, .failed), (.list, .failed)], nil, .dns, .allFailed),
      ([(.list, .failed), (.dns, .failed), (.list, .won)], 2, .list, nil),
      ([(.list, .cancelled), (.dns, .won)], 1, .dns, .noAnswerInTime),
      ([(.list, .lost), (.dns, .won)], 1, .dns, .noAnswerInTime),
      ([(.list, .failed), (.list, .cancelled), (.dns, .won)], 2, .dns, .noAnswerInTime),
      ([(.list, .cancelled), (.dns, .cancelled)], nil, .dns, .noAnswerInTime),
    ] as [([(AddressSource, Outcome)], Int?, AddressSource, Fallback?)])
  func winnerAndFallback(
    _ legs: [(AddressSource, Outcome)], _ winner: Int?, _ source: AddressSource, _ fallback: Fallback?
  ) {
    let report = report(legs)
    #expect(report.winner == winner.map { report.legs[$0] })
    #expect(report.source == source)
    #expect(report.fallback == fallback)
  }

  private static let outcomes: [Outcome] = [.won, .lost, .failed, .cancelled]

  @Test(
    "a report names a fallback only when the list has candidates, is in use and did not win",
    arguments: outcomes, outcomes)
  func fallbackOutcomes(_ listed: Outcome, _ dns: Outcome) {
    let legs = [(AddressSource.list, listed), (.dns, dns)]
    #expect((report(legs).fallback == nil) == (listed == .won))
    for off in [RoutePlan.DirectOff.proxy, .requested, .port, .noList, .expired] {
      #expect(report(legs, directOff: off).fallback == nil)
      #expect(report(legs, directOff: off, noneUsable: .excluded).fallback == nil)
    }
    #expect(report(legs, hasCandidates: false).fallback == nil)
    for reason in [Fallback.circuitsOpen, .excluded] {
      #expect(report(legs, noneUsable: reason).fallback == (listed == .won ? nil : reason))
      #expect(report([(.dns, dns)], noneUsable: reason).fallback == reason)
    }
  }

  @Test("seen(after:) gives the times of a leg relative to the start of a later call")
  func laterCall() {
    let leg = RouteReport.Leg(
      address: nil, source: .dns, started: .milliseconds(100), connected: .milliseconds(300),
      ended: .milliseconds(450), outcome: .failed)
    let seen = leg.seen(after: .milliseconds(250))
    #expect((seen.started, seen.ended) == (.zero, .milliseconds(200)))
    #expect(seen.connected == .milliseconds(50) && seen.secured == nil && seen.outcome == .failed)
    #expect(leg.seen(after: .zero) == leg)
  }

  @Test("outcomes, fallbacks and reasons against direct routing have stable names")
  func stableNames() {
    #expect(
      [Outcome.won, .lost, .failed, .cancelled].map(\.rawValue) == ["won", "lost", "failed", "cancelled"])
    #expect(
      [Fallback.allFailed, .circuitsOpen, .excluded, .noAnswerInTime].map(\.rawValue)
        == ["all-failed", "circuits-open", "excluded", "no-answer-in-time"])
    #expect(
      [RoutePlan.DirectOff.proxy, .requested, .port, .noList, .expired].map(\.rawValue)
        == ["proxy", "flag", "port", "no-list", "expired"])
  }
}

@Suite struct RoutePlanTests {
  @Test("a plan has the documented defaults")
  func defaultValues() {
    let origin = Origin(.https, host: "a.test")
    let plan = RoutePlan(origin: origin, policy: .fastest, legs: [.init(.dns, source: .dns)])
    #expect(plan.origin == origin)
    #expect(plan.directOff == nil && plan.noneUsable == nil && plan.candidates.isEmpty)
    #expect(!plan.startsTwo)
    #expect(plan.multiplexes)
    #expect(plan.legs[0].stagger == .milliseconds(250))
  }

  @Test("only a leg to an address has an address")
  func legAddress() {
    let address = IPAddress(v4: 0x7f00_0001)
    #expect(RoutePlan.Leg(.address(address), source: .list).address == address)
    #expect(RoutePlan.Leg(.dns, source: .dns).address == nil)
    #expect(RoutePlan.Leg(.proxy, source: .dns).address == nil)
  }

  /// A plan may have a hundred legs. A change of the plan writes all legs of the new plan and frees those of
  /// the old one. If each leg held a reference, this would take twice as long.
  @Test("a leg is at most 40 bytes without references, and keeps its stagger exactly")
  func legSize() {
    // Compiles only for types whose values hold no references.
    func isBytesAlone<Value: BitwiseCopyable>(_: Value.Type) -> Bool { true }
    #expect(isBytesAlone(RoutePlan.Leg.self))
    #expect(MemoryLayout<RoutePlan.Leg>.size <= 40)
    for stagger in [Duration.zero, .milliseconds(250), .nanoseconds(1), .seconds(2)] {
      let leg = RoutePlan.Leg(.dns, source: .dns, stagger: stagger)
      #expect(leg.stagger == stagger && !leg.startsAlone)
      let alone = leg.startingAlone
      #expect(alone.stagger == stagger && alone.startsAlone && alone != leg)
    }
  }
}
