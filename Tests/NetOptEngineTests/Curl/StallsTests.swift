import NetOptCore
import Testing

@testable import NetOptEngine

@Suite struct StallsTests {
  private func at(_ milliseconds: Int64) -> MonotonicInstant {
    MonotonicInstant(nanoseconds: milliseconds * 1_000_000)
  }

  /// Calls that timed out: when each was sent, when the last byte came before, when its time was over.
  private func verdicts(_ calls: [(sent: Int64, byte: Int64, over: Int64)]) -> [Bool] {
    var stalls = Stalls()
    return calls.map { stalls.noted(sent: at($0.sent), lastByte: at($0.byte), at: at($0.over)) }
  }

  @Test func theSecondInARowCounts() {
    #expect(verdicts([(0, -10, 200), (250, -10, 450)]) == [false, true])
    #expect(verdicts([(0, -10, 200), (250, -10, 450), (500, -10, 700)]) == [false, true, true])
  }

  @Test func aByteBetweenThemMakesTheSecondAFirst() {
    #expect(verdicts([(0, -10, 200), (250, 230, 450), (500, 230, 700)]) == [false, false, true])
    // And one during a call means that there was no stall.
    #expect(verdicts([(0, -10, 200), (250, 300, 450), (500, 300, 700)]) == [false, false, false])
  }

  @Test func callsThatWereUnderWayTogetherAreOne() {
    #expect(
      verdicts([(0, -10, 200), (1, -10, 201), (150, -10, 350), (210, -10, 410)]) == [
        false, false, false, true,
      ])
  }

  @Test func aCallWithHardlyAnyTimeSaysNothing() {
    #expect(verdicts([(0, -10, 40), (50, -10, 90), (100, -10, 140)]) == [false, false, false])
  }
}
