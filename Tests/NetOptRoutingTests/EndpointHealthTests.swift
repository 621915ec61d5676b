import NetOptCore
import Testing

@testable import NetOptRouting

@Suite struct EndpointHealthTests {
  private var health = EndpointHealth()
  private var random = SplitMix64(seed: 1)

  private mutating func succeed(_ milliseconds: Int, at seconds: Double) {
    _ = health.succeeded(
      connect: .milliseconds(milliseconds / 2), ready: .milliseconds(milliseconds), at: .at(seconds))
  }

  /// A success on a pooled connection.
  private mutating func use(at seconds: Double) -> Bool {
    health.succeeded(connect: nil, ready: nil, at: .at(seconds))
  }

  private mutating func verify() -> Bool { health.verified() }

  @discardableResult
  private mutating func fail(_ kind: LegFailure.Kind, at seconds: Double) -> Bool {
    health.failed(LegFailure(kind, "so it was"), of: "a.example", at: .at(seconds), using: &random)
  }

  @Test mutating func knowsNothingAtFirst() {
    #expect(health.readiness(secure: true) == nil)
    #expect(health.penalty(at: .at(0)) == nil)
    #expect(health.state(at: .at(0)) == .closed)
    #expect(health.nextChange(after: .at(0)) == nil)
    #expect(!use(at: 0))
  }

  @Test mutating func estimatesTheTimeToBeReady() {
    succeed(20, at: 0)
    #expect(health.readiness(secure: true)?.smoothed == .milliseconds(20))
    #expect(health.roundTrip?.smoothed == .milliseconds(10))
  }

  @Test mutating func takesTwoRoundTripsForTLSThatWasNotMeasured() {
    health.measured(connect: .milliseconds(10), at: .at(0))
    #expect(health.readiness(secure: true)?.smoothed == .milliseconds(20))
    #expect(health.readiness(secure: false)?.smoothed == .milliseconds(10))
    succeed(50, at: 0)
    #expect(health.readiness(secure: true)?.smoothed == .milliseconds(50))
  }

  @Test mutating func aFailureIsAPenaltyAndNeverASample() {
    succeed(20, at: 0)
    fail(.refused, at: 1)
    #expect(health.readiness(secure: true)?.smoothed == .milliseconds(20))
    #expect(health.penalty(at: .at(1)) == .seconds(10))
    fail(.refused, at: 2)
    #expect(health.penalty(at: .at(2)) == .seconds(20))
    #expect(health.penalty(at: .at(6.9)) == .seconds(20))
    #expect(health.penalty(at: .at(7)) == nil)
    fail(.tls, at: 8)
    #expect(health.penalty(at: .at(8)) == .seconds(10))
  }

  @Test mutating func penaltiesAddUpToALimit() {
    for _ in 0..<50 { fail(.unreachable, at: 0) }
    #expect(health.penalty(at: .at(0)) == .seconds(100))
  }

  @Test mutating func aPenaltyEndsWithTheCircuit() throws {
    succeed(20, at: 0)
    for _ in 0..<3 { fail(.connectTimeout, at: 0) }
    let until = try #require(health.nextChange(after: .at(0)))
    #expect(health.state(at: .at(0)) == .open)
    #expect(health.penalty(at: .at(0)) != nil)
    #expect(health.state(at: until) == .halfOpen)
    #expect(health.penalty(at: until) == nil)
  }

  @Test mutating func aSuccessTakesPenaltyAndCircuitAway() {
    for _ in 0..<3 { fail(.reset, at: 0) }
    #expect(use(at: 1))
    #expect(health.penalty(at: .at(1)) == nil)
    #expect(health.state(at: .at(1)) == .closed)
    #expect(health.lastFailure?.kind == .reset)
    #expect(!use(at: 1))
  }

  @Test mutating func theLocalNetworkOpensNoCircuit() {
    for _ in 0..<10 { fail(.unreachable, at: 0) }
    #expect(health.state(at: .at(0)) == .closed)
    #expect(health.penalty(at: .at(0)) != nil)
  }

  @Test(arguments: [LegFailure.Kind.resolve, .proxy, .other])
  mutating func whatIsNobodysFaultChangesNothing(_ kind: LegFailure.Kind) {
    for _ in 0..<10 { #expect(!fail(kind, at: 0)) }
    #expect(health.penalty(at: .at(0)) == nil)
    #expect(health.lastFailure == nil)
  }

  private func reason(_ kind: LegFailure.Kind, nextCheck: Duration?) -> ExclusionReason {
    .certificate(kind, host: "a.example", nextCheck: nextCheck, byProbe: true)
  }

  @Test(arguments: [
    LegFailure.Kind.certificateName(presented: ["*.portal.lan"]), .certificateName(presented: []),
    .certificateUntrusted, .certificateExpired,
  ])
  mutating func aWrongCertificateMeansQuarantine(_ kind: LegFailure.Kind) {
    fail(kind, at: 0)
    #expect(health.state(at: .at(0)) == .quarantined)
    #expect(
      health.exclusion(in: .quarantined, at: .at(0)).reason(at: .at(0))
        == reason(kind, nextCheck: .seconds(2)))
    #expect(health.state(at: .at(0), unverified: true) == .closed)
  }

  @Test mutating func quarantineOutlastsARequestThatDoesNotVerify() {
    fail(.certificateUntrusted, at: 0)
    for second in [1.0, 100, 10_000] {
      succeed(20, at: second)
      #expect(health.state(at: .at(second)) != .closed)
      #expect(health.isQuarantined)
    }
    #expect(verify())
    #expect(health.state(at: .at(10_000)) == .closed)
    #expect(!verify())
  }

  /// A request is the check when no probe came within a second, and one request alone.
  @Test mutating func aRequestIsTheCheckThatNoProbeHasMade() throws {
    fail(.certificateUntrusted, at: 0)
    let due = try #require(health.certificateCheck(at: .at(0)))
    #expect((.at(1) ... .at(1.2)).contains(due))
    #expect(health.nextChange(after: .at(0)) == due + .seconds(1))
    #expect(health.state(at: due) == .quarantined)
    let moment = due + .seconds(1)
    #expect(health.state(at: moment) == .halfOpen)
    #expect(!health.isTried(at: moment))
    health.take(at: moment)
    #expect(health.isTried(at: moment))
    #expect(health.state(at: moment) == .quarantined, "a check that is under way keeps others away")
    _ = health.failed(
      LegFailure(.certificateUntrusted, "still"), of: "a.example", from: moment, at: .at(3), using: &random)
    let next = try #require(health.certificateCheck(at: .at(3)))
    #expect((.at(5) ... .at(5.4)).contains(next))
    #expect(!health.isTried(at: .at(3)))
  }

  /// Failures of another kind end no quarantine, and put the next check off as a wrong certificate does.
  @Test(arguments: [LegFailure.Kind.refused, .connectTimeout, .reset, .unreachable])
  mutating func aCheckThatFailsOtherwiseShowsNoCertificate(_ kind: LegFailure.Kind) throws {
    fail(.certificateExpired, at: 0)
    health.take(at: .at(2), byProbe: true)
    fail(kind, at: 2)
    #expect(!health.isTried(at: .at(2)))
    #expect(health.state(at: .at(2)) == .quarantined)
    #expect(
      health.exclusion(in: .quarantined, at: .at(2)).reason(at: .at(2))
        == reason(.certificateExpired, nextCheck: .seconds(3)))
    let next = try #require(health.certificateCheck(at: .at(2)))
    #expect((.at(4) ... .at(4.4)).contains(next))
  }

  @Test mutating func aCheckThatWasGivenUpIsMadeAfterASecond() throws {
    fail(.certificateExpired, at: 0)
    health.take(at: .at(2), byProbe: true)
    // A request that began before ends no check of a probe.
    let isGivenBack = health.giveBack(at: .at(2.1))
    #expect(!isGivenBack)
    #expect(health.isTried(at: .at(2.1)))
    _ = health.giveBack(at: .at(2.2), byProbe: true)
    #expect(!health.isTried(at: .at(2.2)))
    #expect(health.certificateCheck(at: .at(2.2)) == .at(3.2))
    // Of one of which nothing is heard the end is taken for granted.
    health.take(at: .at(4), byProbe: true)
    #expect(health.certificateCheck(at: .at(5)) == .at(34))
    #expect(try #require(health.certificateCheck(at: .at(34))) < .at(34))
  }

  @Test mutating func saysWhyItIsLeftOut() {
    for _ in 0..<3 { fail(.refused, at: 0) }
    let last = LegFailure(.refused, "so it was")
    #expect(health.exclusion(in: .open, at: .at(0)) == .reason(.failures(inARow: 3, last: last)))
    #expect(health.exclusion(in: .halfOpen, at: .at(0)) == .reason(.attemptUnderWay))
  }
}
