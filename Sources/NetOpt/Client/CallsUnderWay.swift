import NetOptLocking
import Synchronization

/// Counts the calls of a client that have not returned, so that the client can end when there are none. Safe
/// from any thread.
final class CallsUnderWay: Sendable {
  /// The bit of `calls` that says that no more calls may begin.
  private static let closed = 1 << 62

  /// The number of calls that have not returned, and the bit `closed`.
  private let calls = Atomic(0)
  /// Those who wait for the end of all calls.
  private let waiters = Locked<[FirstValue<Void>]>([])

  /// The number of calls that have not returned.
  var count: Int { calls.load(ordering: .relaxed) & (Self.closed - 1) }

  /// Whether no more calls may begin.
  var isClosed: Bool { calls.load(ordering: .relaxed) >= Self.closed }

  /// Counts a call that begins.
  ///
  /// - Returns: false if no more calls may begin. Then the call does not count.
  func begin() -> Bool {
    if calls.wrappingAdd(1, ordering: .relaxed).newValue < Self.closed { return true }
    end()
    return false
  }

  /// Counts a call that has returned.
  func end() {
    if calls.wrappingSubtract(1, ordering: .acquiringAndReleasing).newValue == Self.closed { endWaits() }
  }

  /// Lets no more calls begin.
  func close() { calls.bitwiseOr(Self.closed, ordering: .relaxed) }

  /// Lets no more calls begin, and returns when all calls have returned, or when the task is cancelled.
  func drain() async {
    let waiter = FirstValue<Void>()
    waiters.withLock { $0.append(waiter) }
    // The waiter is in the list before the bit is set, so the last call finds it.
    if calls.bitwiseOr(Self.closed, ordering: .acquiringAndReleasing).newValue == Self.closed { endWaits() }
    await waiter.wait()
  }

  private func endWaits() {
    let ended = waiters.withLock { waiters in
      defer { waiters = [] }
      return waiters
    }
    for waiter in ended { waiter.set(()) }
  }
}
