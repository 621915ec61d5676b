import NetOptCore
import Testing

@testable import NetOptRouting

/// Tests what the planner knows of one endpoint. Moments are in seconds after the start of the test.
@Suite struct EndpointHealthTests {
  private var health = EndpointHealth()
  private var random = SplitMix64(seed: 1)

  /// Records a success on a new connection that was ready after this many milliseconds. TCP took half of the
  /// time.
  private mutating func succeed(_ milliseconds: Int, at seconds: Double) {
    _ = health.succeeded(
      connect: .milliseconds(milliseconds / 2), ready: .milliseconds(milliseconds), at: .at(seconds))
  }

  /// Records a success on a pooled connection, which measures no times. Returns whether anything has changed.
  private mutating func use(at seconds: Double) -> Bool {
    health.succeeded(connect: nil, ready: nil, at: .at(seconds))
  }

  /// Records a verified certificate. Returns whether the endpoint was in quarantine.
  private mutating func verify() -> Bool { health.verified() }

  /// Records a failed probe. Returns whether anything has changed.
  @discardableResult
  private mutating func fail(_ kind: LegFailure.Kind, at seconds: Double) -> Bool {
    health.failed(LegFailure(kind, "so it was"), at: .at(seconds), using: &random)
  }

  /// The moment belongs to the state that requests see, and stays until the endpoint works.
  @Test("an endpoint is avoided since its first failure that counted, until it works", arguments: 1...200)
  mutating func avoidedSince(seed: UInt64) {
    var dice = SplitMix64(seed: seed)
    var now = 0.0
    var before: MonotonicInstant?
    for _ in 0..<100 {
      now += [0, 0.1, 3, 20, 700].randomElement(using: &dice)!
      var works = false
      switch Int.random(in: 0..<6, using: &dice) {
      case 0:
        succeed(10, at: now)
        works = true
      case 1, 2: fail([.refused, .connectTimeout].randomElement(using: &dice)!, at: now)
      case 3: fail(.certificateExpired, at: now)
      case 4:
        _ = verify()
        works = true
      default:
        _ = use(at: now)
        works = true
      }
      let since = health.avoidedSince(at: .at(now))
      #expect((since != nil) == (health.state(at: .at(now)) != .closed), "at \(now)")
      #expect(since.map { $0 <= .at(now) } ?? true)
      // It does not move while the endpoint is avoided, unless it works in part or its failures are forgotten.
      if let before, let since, !works, now < (before - .at(0)).milliseconds / 1000 + 600 {
        #expect(since == before)
      }
      before = since
    }
  }

  @Test("a new endpoint has no times, no penalty and a closed circuit breaker")
  mutating func newEndpoint() {
    #expect(health.readiness(secure: true) == nil)
    #expect(health.penalty(at: .at(0)) == nil)
    #expect(health.state(at: .at(0)) == .closed)
    #expect(health.nextChange(after: .at(0)) == nil)
    #expect(!use(at: 0))
  }

  @Test("a success is a sample of the ready time and of the round trip")
  mutating func readyTime() {
    succeed(20, at: 0)
    #expect(health.readiness(secure: true)?.smoothed == .milliseconds(20))
    #expect(health.roundTrip?.smoothed == .milliseconds(10))
  }

  @Test("without a TLS sample, the ready time for https is two round trips")
  mutating func unmeasuredTLS() {
    health.measured(connect: .milliseconds(10), at: .at(0))
    #expect(health.readiness(secure: true)?.smoothed == .milliseconds(20))
    #expect(health.readiness(secure: false)?.smoothed == .milliseconds(10))
    succeed(50, at: 0)
    #expect(health.readiness(secure: true)?.smoothed == .milliseconds(50))
  }

  @Test("a failure adds a penalty of 10 s for 5 s, and is no time sample")
  mutating func failurePenalty() {
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

  @Test("penalties add up to 100 s at most")
  mutating func penaltiesAddUpToALimit() {
    for _ in 0..<50 { fail(.unreachable, at: 0) }
    #expect(health.penalty(at: .at(0)) == .seconds(100))
  }

  @Test("a penalty ends when the circuit breaker becomes half-open")
  mutating func endOfPenalty() throws {
    succeed(20, at: 0)
    for _ in 0..<3 { fail(.connectTimeout, at: 0) }
    let until = try #require(health.nextChange(after: .at(0)))
    #expect(health.state(at: .at(0)) == .open)
    #expect(health.penalty(at: .at(0)) != nil)
    #expect(health.state(at: until) == .halfOpen)
    #expect(health.penalty(at: until) == nil)
  }

  @Test("a success ends the penalty and closes the circuit breaker, and the last failure stays")
  mutating func successAfterFailures() {
    for _ in 0..<3 { fail(.reset, at: 0) }
    #expect(use(at: 1))
    #expect(health.penalty(at: .at(1)) == nil)
    #expect(health.state(at: .at(1)) == .closed)
    #expect(health.lastFailure?.kind == .reset)
    #expect(!use(at: 1))
  }

  @Test("failures of the local network are a penalty and open no circuit breaker")
  mutating func localNetworkFailures() {
    for _ in 0..<10 { fail(.unreachable, at: 0) }
    #expect(health.state(at: .at(0)) == .closed)
    #expect(health.penalty(at: .at(0)) != nil)
  }

  @Test(
    "failures of DNS, of a proxy or of an unknown kind do not count against an endpoint",
    arguments: [LegFailure.Kind.resolve, .proxy, .other])
  mutating func nobodysFault(_ kind: LegFailure.Kind) {
    for _ in 0..<10 { #expect(!fail(kind, at: 0)) }
    #expect(health.penalty(at: .at(0)) == nil)
    #expect(health.lastFailure == nil)
  }

  /// The reason for the exclusion of an endpoint with a wrong certificate.
  ///
  /// - Parameter nextCheck: the time until the next check in whole seconds; `nil` while a check is under way.
  private func reason(_ kind: LegFailure.Kind, nextCheck: Duration?) -> ExclusionReason {
    .certificate(LegFailure(kind, "so it was"), nextCheck: nextCheck, byProbe: true)
  }

  @Test(
    "a wrong certificate causes a quarantine, which unverified requests ignore",
    arguments: [
      LegFailure.Kind.certificateName(presented: ["*.portal.lan"]), .certificateName(presented: []),
      .certificateUntrusted, .certificateExpired,
    ])
  mutating func wrongCertificate(_ kind: LegFailure.Kind) {
    fail(kind, at: 0)
    #expect(health.state(at: .at(0)) == .quarantined)
    #expect(
      health.exclusion(in: .quarantined, at: .at(0)).reason(at: .at(0))
        // The check is due after 1 s to 1.2 s, rounded up to whole seconds.
        == reason(kind, nextCheck: .seconds(2)))
    #expect(health.state(at: .at(0), unverified: true) == .closed)
  }

  @Test("successes without verification do not end a quarantine, and a verified certificate does")
  mutating func unverifiedSuccesses() {
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

  /// A request makes a certificate check that is due if no probe has made it within 1 s. Only one request
  /// makes the check.
  @Test("one request makes a certificate check that no probe has made within 1 s")
  mutating func checkByRequest() throws {
    fail(.certificateUntrusted, at: 0)
    let due = try #require(health.certificateCheck(at: .at(0)))
    #expect((.at(1) ... .at(1.2)).contains(due))
    #expect(health.nextChange(after: .at(0)) == due + .seconds(1))
    #expect(health.state(at: due) == .quarantined)
    let moment = due + .seconds(1)
    #expect(health.state(at: moment) == .halfOpen)
    #expect(!health.isAttemptUnderWay(at: moment))
    health.take(at: moment)
    #expect(health.isAttemptUnderWay(at: moment))
    #expect(health.state(at: moment) == .quarantined, "a check that is under way keeps others away")
    _ = health.failed(
      LegFailure(.certificateUntrusted, "still"), from: moment, at: .at(3), using: &random)
    let next = try #require(health.certificateCheck(at: .at(3)))
    #expect((.at(5) ... .at(5.4)).contains(next))
    #expect(!health.isAttemptUnderWay(at: .at(3)))
  }

  /// The check may fail for another reason than the certificate. Such a failure does not end the quarantine.
  /// It doubles the wait before the next check, as a wrong certificate does.
  @Test(
    "a certificate check that fails for another reason keeps the quarantine and doubles the wait",
    arguments: [LegFailure.Kind.refused, .connectTimeout, .reset, .unreachable])
  mutating func otherCheckFailure(_ kind: LegFailure.Kind) throws {
    fail(.certificateExpired, at: 0)
    health.take(at: .at(2), byProbe: true)
    fail(kind, at: 2)
    #expect(!health.isAttemptUnderWay(at: .at(2)))
    #expect(health.state(at: .at(2)) == .quarantined)
    #expect(
      health.exclusion(in: .quarantined, at: .at(2)).reason(at: .at(2))
        // The check is due after 2 s to 2.4 s, rounded up to whole seconds.
        == reason(.certificateExpired, nextCheck: .seconds(3)))
    let next = try #require(health.certificateCheck(at: .at(2)))
    #expect((.at(4) ... .at(4.4)).contains(next))
  }

  @Test("a certificate check is repeated 1 s after it was given up, or 30 s after it began")
  mutating func unfinishedCheck() throws {
    fail(.certificateExpired, at: 0)
    health.take(at: .at(2), byProbe: true)
    // Only a probe can give back the check that a probe makes. A request that began earlier cannot.
    let isGivenBack = health.giveBack(at: .at(2.1))
    #expect(!isGivenBack)
    #expect(health.isAttemptUnderWay(at: .at(2.1)))
    _ = health.giveBack(at: .at(2.2), byProbe: true)
    #expect(!health.isAttemptUnderWay(at: .at(2.2)))
    #expect(health.certificateCheck(at: .at(2.2)) == .at(3.2))
    // A check without a result counts as ended 30 s after its start. Then the next check is due at once.
    health.take(at: .at(4), byProbe: true)
    #expect(health.certificateCheck(at: .at(5)) == .at(34))
    #expect(try #require(health.certificateCheck(at: .at(34))) < .at(34))
  }

  @Test("the exclusion names the failures of an open endpoint, and the attempt of a half-open one")
  mutating func exclusionReasons() {
    for _ in 0..<3 { fail(.refused, at: 0) }
    let last = LegFailure(.refused, "so it was")
    #expect(health.exclusion(in: .open, at: .at(0)) == .reason(.failures(inARow: 3, last: last)))
    #expect(health.exclusion(in: .halfOpen, at: .at(0)) == .reason(.attemptUnderWay))
  }
}
