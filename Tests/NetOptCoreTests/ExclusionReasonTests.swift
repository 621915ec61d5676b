import NetOptCore
import Testing

@Suite("The reasons why endpoints are excluded") struct ExclusionReasonTests {
  private static let refused = LegFailure(.refused, "connection refused")

  @Test(
    "each reason has the text that get --json and -v print",
    arguments: [
      (.family(.v4), "only IPv4 was asked for"), (.family(.v6), "only IPv6 was asked for"),
      (.failures(inARow: 3, last: nil), "it failed 3 times in a row"),
      (
        .failures(inARow: 4, last: refused),
        "it failed 4 times in a row; the last time: connection refused"
      ),
      (
        .failureRate(failed: 2, attempts: 5, last: refused),
        "2 of the last 5 attempts failed; the last time: connection refused"
      ),
      (
        .resting(for: .seconds(30), last: LegFailure(.other, "it answered 503")),
        "it asked clients not to use it for 30 s; the last time: it answered 503"
      ), (.resting(for: .milliseconds(2900), last: nil), "it asked clients not to use it for 2 s"),
      (.attemptUnderWay, "it failed before, and one attempt is testing it now"),
      (.otherAttempt, "another attempt of this call uses it"),
    ] as [(ExclusionReason, String)])
  func text(_ reason: ExclusionReason, _ text: String) {
    #expect(reason.description == text)
    // `Candidate.failure` has a value only if a wrong certificate excludes the endpoint. It is `nil` for all
    // reasons of this test, even for those that contain a last failure.
    #expect(RouteReport.Candidate(.loopback, score: nil, source: .list, excluded: reason).failure == nil)
  }

  @Test("a certificate reason says what the last check found and when the address is checked again")
  func certificate() {
    let failure = LegFailure(.certificateExpired, "the certificate has expired; renew it")
    func reason(_ nextCheck: Duration?, _ byProbe: Bool = true) -> ExclusionReason {
      .certificate(failure, nextCheck: nextCheck, byProbe: byProbe)
    }
    let text = failure.message
    #expect(reason(.seconds(2)).description == text + "; the address is probed again in 2 s")
    #expect(reason(.zero).description == text + "; the address is probed again now")
    #expect(reason(.seconds(60), false).description == text + "; a request tries the address again in 60 s")
    #expect(reason(.zero, false).description == text + "; a request tries the address again now")
    #expect(reason(nil).description == text + "; the address is being checked again")
    #expect(
      RouteReport.Candidate(.loopback, score: nil, source: .list, excluded: reason(nil)).failure
        == .certificateExpired)
  }
}
