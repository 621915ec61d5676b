import NetOptCore
import Testing

@testable import NetOptEngine

@Suite struct StallsTests {
  private func at(_ milliseconds: Int64) -> MonotonicInstant {
    MonotonicInstant(nanoseconds: milliseconds * 1_000_000)
  }

  /// Notes calls that timed out. Returns for each call whether it is the second timeout in a row.
  ///
  /// - Parameter calls: for each call the times in ms when its request was sent, when the last byte arrived
  ///   on the connection, and when the call timed out.
  private func verdicts(_ calls: [(sent: Int64, byte: Int64, over: Int64)]) -> [Bool] {
    var stalls = Stalls()
    return calls.map { stalls.record(sent: at($0.sent), lastByte: at($0.byte), at: at($0.over)) }
  }

  @Test("the second and each further timeout in a row without a byte counts")
  func consecutiveTimeouts() {
    #expect(verdicts([(0, -10, 200), (250, -10, 450)]) == [false, true])
    #expect(verdicts([(0, -10, 200), (250, -10, 450), (500, -10, 700)]) == [false, true, true])
  }

  @Test("a byte between two timeouts restarts the count, and a byte during a call means no stall")
  func byteBetween() {
    #expect(verdicts([(0, -10, 200), (250, 230, 450), (500, 230, 700)]) == [false, false, true])
    // A byte that arrives during a call means that the call did not stall.
    #expect(verdicts([(0, -10, 200), (250, 300, 450), (500, 300, 700)]) == [false, false, false])
  }

  @Test("timeouts of calls that were under way together count once")
  func concurrentTimeouts() {
    #expect(
      verdicts([(0, -10, 200), (1, -10, 201), (150, -10, 350), (210, -10, 410)]) == [
        false, false, false, true,
      ])
  }

  @Test("a call that times out after less than 50 ms does not count")
  func shortCalls() {
    #expect(verdicts([(0, -10, 40), (50, -10, 90), (100, -10, 140)]) == [false, false, false])
  }
}
