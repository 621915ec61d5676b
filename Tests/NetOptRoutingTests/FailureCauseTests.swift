import NetOptCore
import Testing

@testable import NetOptRouting

@Suite struct FailureCauseTests {
  @Test(
    "the kind of a failure decides its cause",
    arguments: [
      (LegFailure.Kind.refused, FailureCause.endpoint), (.connectTimeout, .endpoint),
      (.tlsTimeout, .endpoint),
      (.reset, .endpoint), (.tls, .endpoint), (.certificateName(presented: ["a"]), .certificate),
      (.certificateUntrusted, .certificate), (.certificateExpired, .certificate),
      (.busy, .service), (.unreachable, .localNetwork), (.resolve, .unattributed),
      (.nameNotFound, .unattributed),
      (.proxy, .unattributed),
      (.proxyRefused, .unattributed), (.authorities, .unattributed),
      (.other, .unattributed),
    ])
  func causeOfFailure(_ kind: LegFailure.Kind, _ cause: FailureCause) {
    #expect(FailureCause(kind) == cause)
  }

  /// `busy` is a failure of the service and counts as half a failure. Three failures to connect open the
  /// circuit breaker, but three `busy` failures do not. Five do, because then fewer than 80 % of five
  /// attempts have succeeded. A ready connection does not close the circuit breaker: connections worked all
  /// the time.
  @Test("five busy failures open the circuit breaker, and only a response closes it")
  func busyService() {
    var health = EndpointHealth()
    var random = SplitMix64(seed: 1)
    var now = MonotonicInstant(nanoseconds: 1_000_000_000_000)
    for count in 1...5 {
      #expect(health.state(at: now) == .closed)
      #expect(health.failed(LegFailure(.busy, "busy"), from: now, at: now, using: &random))
      #expect(health.state(at: now) == (count < 5 ? .closed : .open))
    }
    now = now + .seconds(10)
    #expect(health.state(at: now) == .halfOpen)
    _ = health.succeeded(connect: .milliseconds(1), ready: .milliseconds(2), answered: false, at: now)
    #expect(health.state(at: now) == .halfOpen)
    _ = health.succeeded(connect: nil, ready: nil, at: now)
    #expect(health.state(at: now) == .closed)
  }
}
