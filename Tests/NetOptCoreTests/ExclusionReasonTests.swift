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
      (.attemptUnderWay, "it failed before, and another request is trying it now"),
      (.otherAttempt, "another attempt of this call waits for its response"),
    ] as [(ExclusionReason, String)])
  func text(_ reason: ExclusionReason, _ text: String) {
    #expect(reason.description == text)
    // `Candidate.failure` has a value only if a wrong certificate excludes the endpoint. It is `nil` for all
    // reasons of this test, even for those that contain a last failure.
    #expect(RouteReport.Candidate(.loopback, score: nil, source: .list, excluded: reason).failure == nil)
  }

  /// A certificate failure, and the text about it. The text goes on with the time of the next check, and with
  /// who makes the check: a probe or a request.
  @Test(
    "a certificate reason says what is wrong with the certificate and when the endpoint is tried again",
    arguments: [
      (
        .certificateName(presented: ["*.portal.lan"]),
        "its certificate is for *.portal.lan, not for a.example"
      ),
      (
        .certificateName(presented: ["a", "b", "c", "d", "e", "f"]),
        "its certificate is for a, b, c, d and 2 more, not for a.example"
      ), (.certificateName(presented: []), "its certificate is for other names, not for a.example"),
      (.certificateName(presented: ["x\u{1b}[2J"]), "its certificate is for x\u{fffd}[2J, not for a.example"),
      (.certificateUntrusted, "its certificate for a.example is not signed by a trusted authority"),
      (.certificateExpired, "its certificate for a.example has expired or is not yet valid"),
    ] as [(LegFailure.Kind, String)])
  func certificate(_ kind: LegFailure.Kind, _ text: String) {
    func reason(_ nextCheck: Duration?, _ byProbe: Bool = true) -> ExclusionReason {
      .certificate(kind, host: "a.example", nextCheck: nextCheck, byProbe: byProbe)
    }
    #expect(reason(.seconds(2)).description == text + "; it is probed again in 2 s")
    #expect(reason(.zero).description == text + "; it is probed again now")
    #expect(reason(.seconds(60), false).description == text + "; a request tries it again in 60 s")
    #expect(reason(.zero, false).description == text + "; a request tries it again now")
    #expect(reason(nil).description == text + "; it is being checked again")
    #expect(
      RouteReport.Candidate(.loopback, score: nil, source: .list, excluded: reason(nil)).failure == kind)
  }
}
