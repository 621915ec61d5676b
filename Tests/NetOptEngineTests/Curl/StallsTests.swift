import NetOptCore
import Testing

@testable import NetOptEngine

/// The detection of a dead connection by the calls that time out on it.
@Suite struct StallsTests {
  /// Returns a moment, in milliseconds after the start of the clock.
  private func at(_ milliseconds: Int64) -> MonotonicInstant {
    MonotonicInstant(nanoseconds: milliseconds * 1_000_000)
  }

  /// Records calls that timed out on one connection. Returns for each call whether the connection counts as
  /// dead: the call is the second or a later timeout in a row.
  ///
  /// - Parameter calls: for each call three moments in ms. `sent`: when its request was sent. `byte`: when
  ///   the last byte had arrived on the connection, as known at the timeout. `over`: when the call timed out.
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
    // The byte at 300 ms arrived during the second call. So the third call is the first that counts after it.
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
