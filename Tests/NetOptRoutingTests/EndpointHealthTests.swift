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

  @Test(arguments: [
    (
      LegFailure.Kind.certificateName(presented: ["*.portal.lan"]),
      "its certificate is for *.portal.lan, not for a.example"
    ),
    (
      .certificateName(presented: ["a", "b", "c", "d", "e", "f"]),
      "its certificate is for a, b, c, d and 2 more, not for a.example"
    ),
    (.certificateName(presented: []), "its certificate is for other names, not for a.example"),
    (.certificateName(presented: ["x\u{1b}[2J"]), "its certificate is for x�[2J, not for a.example"),
    (.certificateUntrusted, "its certificate for a.example is not signed by a trusted authority"),
    (.certificateExpired, "its certificate for a.example has expired or is not valid yet"),
  ])
  mutating func aWrongCertificateMeansQuarantine(_ kind: LegFailure.Kind, _ reason: String) {
    fail(kind, at: 0)
    #expect(health.state(at: .at(0)) == .quarantined)
    #expect(health.reason(of: .quarantined, at: .at(0)) == reason)
    #expect(health.state(at: .at(0), unverified: true) == .closed)
  }

  @Test mutating func quarantineOutlastsARequestThatDoesNotVerify() {
    fail(.certificateUntrusted, at: 0)
    succeed(20, at: 1)
    #expect(health.state(at: .at(1)) == .quarantined)
    #expect(verify())
    #expect(health.state(at: .at(1)) == .closed)
    #expect(!verify())
  }

  @Test mutating func quarantineEndsInOneAttempt() {
    fail(.certificateUntrusted, at: 0)
    #expect(health.nextChange(after: .at(100)) == .at(600))
    #expect(health.state(at: .at(599)) == .quarantined)
    #expect(health.state(at: .at(600)) == .halfOpen)
    #expect(!health.isTried(at: .at(600)))
    health.take(at: .at(600))
    #expect(health.isTried(at: .at(600)))
    fail(.certificateUntrusted, at: 601)
    #expect(health.state(at: .at(601)) == .quarantined)
    #expect(health.state(at: .at(1201)) == .halfOpen)
    succeed(20, at: 1201)
    #expect(health.state(at: .at(1201)) == .closed)
  }

  @Test mutating func saysWhyItIsLeftOut() {
    for _ in 0..<3 { fail(.refused, at: 0) }
    #expect(health.reason(of: .open, at: .at(0)) == "it failed 3 times in a row; the last time: so it was")
    #expect(health.reason(of: .halfOpen, at: .at(0)) == "it failed before, and one attempt is under way")
  }
}
