import NetOptCore
import Testing

@testable import NetOptRouting

@Suite struct CircuitTests {
  private var circuit = Circuit()
  private var random = SplitMix64(seed: 1)

  private mutating func fail(_ times: Int, at seconds: Double) {
    for _ in 0..<times { circuit.failed(at: .at(seconds), using: &random) }
  }

  private mutating func giveBack() -> Bool { circuit.giveBack() }

  /// How long the circuit is open from a moment on.
  private func openTime(from seconds: Double) -> Double? {
    circuit.openUntil(at: .at(seconds)).map { ($0 - .at(seconds)).milliseconds / 1000 }
  }

  @Test mutating func opensAfterThreeFailuresInARow() {
    fail(2, at: 0)
    #expect(circuit.state(at: .at(0)) == .closed)
    circuit.succeeded()
    fail(2, at: 1)
    #expect(circuit.state(at: .at(1)) == .closed)
    fail(1, at: 2)
    #expect(circuit.state(at: .at(2)) == .open)
    #expect(circuit.failures(at: .at(2)) == 3)
  }

  @Test mutating func becomesHalfOpenAfterAWhile() {
    fail(3, at: 0)
    #expect(circuit.state(at: .at(3.9)) == .open)
    #expect(circuit.state(at: .at(6.1)) == .halfOpen)
    #expect(circuit.openUntil(at: .at(6.1)) == nil)
  }

  @Test mutating func staysOpenTwiceAsLongEachTimeUpToFiveMinutes() throws {
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

  @Test func jitterFollowsFromTheSeedAndSpreads() throws {
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

  @Test mutating func aLateFailureDoesNotKeepItOpenLonger() {
    fail(3, at: 0)
    let until = circuit.openUntil(at: .at(0))
    fail(5, at: 3)
    #expect(circuit.openUntil(at: .at(3)) == until)
  }

  @Test mutating func aSuccessClosesItAndForgetsEverything() throws {
    fail(3, at: 0)
    fail(1, at: 7)
    circuit.succeeded()
    #expect(circuit == Circuit())
    #expect(circuit.isClear)
    fail(3, at: 8)
    #expect((4.0...6.0).contains(try #require(openTime(from: 8))))
  }

  @Test mutating func letsOneAttemptThrough() {
    fail(3, at: 0)
    #expect(!circuit.isTried(at: .at(7)))
    circuit.take(at: .at(7))
    #expect(circuit.isTried(at: .at(7)))
    #expect(circuit.isTried(at: .at(36.9)))
    #expect(!circuit.isTried(at: .at(37)))
    #expect(giveBack())
    #expect(!circuit.isTried(at: .at(7)))
    #expect(!giveBack())
    circuit.take(at: .at(8))
    fail(1, at: 9)
    #expect(circuit.state(at: .at(9)) == .open)
    #expect(!giveBack())
  }

  @Test mutating func forgetsAStreakOfFailures() {
    fail(2, at: 0)
    fail(1, at: 601)
    #expect(circuit.state(at: .at(601)) == .closed)
    #expect(circuit.failures(at: .at(601)) == 1)
    #expect(circuit.failures(at: .at(1202)) == 0)
  }

  @Test mutating func forgetsThatItWasOpen() throws {
    fail(3, at: 0)
    let until = try #require(openTime(from: 0))
    #expect(circuit.state(at: .at(until + 599)) == .halfOpen)
    #expect(circuit.state(at: .at(until + 601)) == .closed)
    fail(1, at: until + 601)
    #expect(circuit.state(at: .at(until + 601)) == .closed)
    #expect(circuit.failures(at: .at(until + 601)) == 1)
  }

  @Test mutating func saysWhenItChangesNext() throws {
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
}
