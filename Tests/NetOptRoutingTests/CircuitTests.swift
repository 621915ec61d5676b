import NetOptCore
import Testing

@testable import NetOptRouting

/// Tests the circuit breaker of an endpoint. Moments are in seconds after the start of the test.
@Suite struct CircuitTests {
  private var circuit = Circuit()
  private var random = SplitMix64(seed: 1)

  /// Records this many failures at one moment.
  private mutating func fail(_ times: Int, at seconds: Double) {
    for _ in 0..<times { circuit.failed(at: .at(seconds), using: &random) }
  }

  /// Ends the attempt of a request without a result. Returns whether there was one.
  private mutating func giveBack() -> Bool { circuit.giveBack() }

  /// How many seconds after this moment the open time ends; `nil` when the circuit breaker is not open.
  private func openTime(from seconds: Double) -> Double? {
    circuit.openUntil(at: .at(seconds)).map { ($0 - .at(seconds)).milliseconds / 1000 }
  }

  @Test mutating func opensAfterThreeFailuresInARow() {
    fail(2, at: 0)
    #expect(circuit.state(at: .at(0)) == .closed)
    circuit.succeeded(at: .at(0))
    fail(1, at: 1)
    #expect(circuit.state(at: .at(1)) == .closed)
    for _ in 0..<20 { circuit.succeeded(at: .at(1)) }
    fail(2, at: 2)
    #expect(circuit.state(at: .at(2)) == .closed)
    fail(1, at: 2)
    #expect(circuit.state(at: .at(2)) == .open)
    #expect(circuit.failures(at: .at(2)) == 3)
  }

  @Test("a circuit breaker becomes half-open 4 to 6 s after it opened")
  mutating func becomesHalfOpen() {
    fail(3, at: 0)
    #expect(circuit.state(at: .at(3.9)) == .open)
    #expect(circuit.state(at: .at(6.1)) == .halfOpen)
    #expect(circuit.openUntil(at: .at(6.1)) == nil)
  }

  @Test mutating func isOpenSinceItFirstOpened() {
    fail(3, at: 2)
    #expect(circuit.openSince == .at(2))
    fail(1, at: 9)
    circuit.rest(for: .seconds(60), at: .at(10))
    #expect(circuit.openSince == .at(2))
    circuit.succeeded(at: .at(80))
    #expect(circuit.openSince == nil)
    circuit.rest(for: .seconds(5), at: .at(90))
    #expect(circuit.openSince == .at(90))
    // The failures are forgotten, and the circuit breaker opens anew.
    fail(3, at: 1000)
    #expect(circuit.openSince == .at(1000))
  }

  @Test("the open time doubles with each failed attempt, from 5 s to 300 s")
  mutating func openTimes() throws {
    fail(2, at: 0)
    var now = 0.0
    for expected in [5.0, 10, 20, 40, 80, 160, 300, 300, 300] {
      fail(1, at: now)
      let time = try #require(openTime(from: now))
      #expect((0.8 * expected...1.2 * expected).contains(time))
      now += time + 0.1
      #expect(circuit.state(at: .at(now)) == .halfOpen)
    }
  }

  @Test("the seed decides the jitter of the open time, and seeds spread by more than 1 s")
  func jitter() throws {
    // The open times with 50 seeds.
    let times = try (UInt64(0)..<50).map { seed in
      var random = SplitMix64(seed: seed)
      var circuit = Circuit()
      for _ in 0..<3 { circuit.failed(at: .at(0), using: &random) }
      var again = SplitMix64(seed: seed)
      var same = Circuit()
      for _ in 0..<3 { same.failed(at: .at(0), using: &again) }
      #expect(circuit == same)
      return try #require(circuit.openUntil(at: .at(0))) - .at(0)
    }
    #expect(Set(times).count > 45)
    #expect(try #require(times.max()) - #require(times.min()) > .seconds(1))
  }

  @Test("a failure while the circuit breaker is open does not prolong the open time")
  mutating func failureWhileOpen() {
    fail(3, at: 0)
    let until = circuit.openUntil(at: .at(0))
    fail(5, at: 3)
    #expect(circuit.openUntil(at: .at(3)) == until)
  }

  @Test("a success closes the circuit breaker and resets its failures and open time")
  mutating func closesOnSuccess() throws {
    fail(3, at: 0)
    fail(1, at: 7)
    circuit.succeeded(at: .at(7))
    #expect(circuit.hasNoFailures)
    #expect(circuit.failures(at: .at(7)) == 0)
    #expect(circuit.recentCounts == (1, 0))
    fail(3, at: 8)
    #expect((4.0...6.0).contains(try #require(openTime(from: 8))))
  }

  @Test("an attempt holds others back until it fails, is given back, or 30 s have passed")
  mutating func oneAttempt() {
    fail(3, at: 0)
    #expect(!circuit.isAttemptUnderWay(at: .at(7)))
    circuit.take(at: .at(7))
    #expect(circuit.isAttemptUnderWay(at: .at(7)))
    #expect(circuit.isAttemptUnderWay(at: .at(36.9)))
    #expect(!circuit.isAttemptUnderWay(at: .at(37)))
    #expect(giveBack())
    #expect(!circuit.isAttemptUnderWay(at: .at(7)))
    #expect(!giveBack())
    circuit.take(at: .at(8))
    fail(1, at: 9)
    #expect(circuit.state(at: .at(9)) == .open)
    #expect(!giveBack())
  }

  @Test("a circuit breaker forgets a streak of failures after 600 s")
  mutating func forgetsFailures() {
    fail(2, at: 0)
    fail(1, at: 601)
    #expect(circuit.state(at: .at(601)) == .closed)
    #expect(circuit.failures(at: .at(601)) == 1)
    #expect(circuit.failures(at: .at(1202)) == 0)
  }

  @Test("a half-open circuit breaker closes 600 s after its open time")
  mutating func forgetsOpenTime() throws {
    fail(3, at: 0)
    let until = try #require(openTime(from: 0))
    #expect(circuit.state(at: .at(until + 599)) == .halfOpen)
    #expect(circuit.state(at: .at(until + 601)) == .closed)
    fail(1, at: until + 601)
    #expect(circuit.state(at: .at(until + 601)) == .closed)
    #expect(circuit.failures(at: .at(until + 601)) == 1)
  }

  @Test("the next change is the end of the memory, the open time or the attempt")
  mutating func nextChange() throws {
    #expect(circuit.nextChange(after: .at(0)) == nil)
    fail(1, at: 0)
    #expect(circuit.nextChange(after: .at(0)) == .at(600))
    fail(2, at: 1)
    let until = try #require(circuit.openUntil(at: .at(1)))
    #expect(circuit.nextChange(after: .at(1)) == until)
    #expect(circuit.nextChange(after: until) == until + Circuit.memory)
    circuit.take(at: until)
    #expect(circuit.nextChange(after: until) == until + Circuit.attemptLimit)
    #expect(circuit.nextChange(after: until + .seconds(700)) == nil)
  }

  @Test(
    "under 80 % successes of at least five attempts in 30 s open a circuit breaker",
    arguments: [
      // The number of attempts, which are spread over 24 s; the number n, when every n-th attempt fails; and
      // whether the circuit breaker opens.
      (20, 4, true), (20, 5, false), (4, 2, false), (6, 2, true), (100, 6, false),
    ])
  mutating func opensWhenTooFewSucceed(_ attempts: Int, _ every: Int, _ opens: Bool) {
    // The circuit breaker may open in the middle of the attempts: the next success closes it again.
    var hasOpened = false
    for attempt in 1...attempts {
      let now = MonotonicInstant.at(Double(attempt) * 24 / Double(attempts))
      if attempt % every == 0 { circuit.failed(at: now, using: &random) } else { circuit.succeeded(at: now) }
      if circuit.state(at: now) == .open { hasOpened = true }
    }
    #expect(hasOpened == opens)
  }

  @Test("attempts older than 30 s do not count")
  mutating func forgetsOldAttempts() {
    for second in 0..<2 {
      fail(1, at: Double(second))
      circuit.succeeded(at: .at(Double(second)))
    }
    // Four attempts with two failures. A third failure now would open the circuit breaker, as three of five
    // attempts would have failed. More than 30 s later, it is the only attempt that counts.
    #expect(circuit.recentCounts == (4, 2))
    fail(1, at: 40)
    #expect(circuit.recentCounts == (1, 1))
    #expect(circuit.state(at: .at(40)) == .closed)
  }

  @Test("a failure of the service counts half, and the fifth one in a row opens the circuit breaker")
  mutating func serviceFailures() {
    for _ in 0..<4 {
      circuit.failed(.useless, at: .at(0), isHalf: true, using: &random)
      #expect(circuit.state(at: .at(0)) == .closed)
    }
    #expect(circuit.failures(at: .at(0)) == 2)
    // Five half failures in five attempts are a failure rate of 50 %.
    circuit.failed(.useless, at: .at(0), isHalf: true, using: &random)
    #expect(circuit.state(at: .at(0)) == .open)
    #expect(circuit.lastFault == .useless)
  }

  @Test("an open circuit breaker reports a rest that ends before its open time")
  mutating func restWhileOpen() throws {
    for _ in 0..<3 { circuit.failed(at: .at(0), using: &random) }
    circuit.rest(for: .seconds(2), at: .at(1))
    // `rest(at:)` returns the whole length of the rest.
    #expect(circuit.rest(at: .at(2.9)) == .seconds(2))
    #expect(circuit.rest(at: .at(3)) == nil)
    #expect(circuit.state(at: .at(3)) == .open)
  }

  @Test("a failed request or probe ends its own attempt, and a request does not end a probe's")
  mutating func attempts() throws {
    for _ in 0..<3 { circuit.failed(at: .at(0), using: &random) }
    circuit.take(at: .at(10), byProbe: true)
    circuit.failed(at: .at(11), using: &random)
    #expect(circuit.isAttemptUnderWay(at: .at(12)))
    circuit.failed(byProbe: true, at: .at(12), using: &random)
    #expect(!circuit.isAttemptUnderWay(at: .at(12)))
    circuit.take(at: .at(40))
    circuit.failed(at: .at(41), using: &random)
    #expect(!circuit.isAttemptUnderWay(at: .at(41)))
  }

  @Test("a circuit breaker rests as long as it is asked to, at most 300 s")
  mutating func restTimes() throws {
    circuit.rest(for: .seconds(30), at: .at(0))
    #expect(circuit.state(at: .at(29.9)) == .open)
    #expect(circuit.state(at: .at(30)) == .halfOpen)
    // A rest that ends earlier changes nothing. A very long rest is cut to 300 s. A success ends the rest.
    circuit.rest(for: .seconds(5), at: .at(1))
    #expect(circuit.rest(at: .at(1)) == .seconds(30))
    circuit.rest(for: .seconds(86_400), at: .at(1))
    #expect(circuit.openUntil(at: .at(1)) == .at(301))
    circuit.succeeded(at: .at(302))
    #expect(circuit.hasNoFailures && circuit.rest(at: .at(2)) == nil && circuit.lastFault == .unreachable)
  }
}
