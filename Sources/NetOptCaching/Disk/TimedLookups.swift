import NetOptLocking

/// Disk look-ups with a time limit. Another process may lock the database, or a file system may hang. Then
/// the look-up is a miss, and the request goes to the origin.
///
/// While a look-up that exceeded its limit has not returned, no other look-up begins: no other one would be
/// faster, and they would pile up.
final class TimedLookups<Found: Sendable>: Sendable {
  private struct Waiting {
    let due: ContinuousClock.Instant
    let continuation: CheckedContinuation<Found?, Never>
  }

  private struct State {
    var waiting: [UInt64: Waiting] = [:]
    var lastID: UInt64 = 0
    /// The number of look-ups that exceeded their limit and have not returned.
    var overdue = 0
    /// Whether a task is running that ends the waits of overdue look-ups.
    var isWatched = false
  }

  /// The interval at which the task checks for overdue look-ups.
  private static var interval: Duration { .milliseconds(20) }

  private let state = Locked(State())

  /// Begins a look-up and waits for its result.
  ///
  /// - Parameters:
  ///   - limit: how long to wait. The wait may last some 20 ms longer.
  ///   - begin: begins the look-up. It passes the result to its argument, on any thread.
  /// - Returns: `nil` when the look-up exceeds the limit, or when an earlier overdue one has not returned.
  func perform(within limit: Duration, _ begin: (@escaping @Sendable (Found) -> Void) -> Void) async -> Found?
  {
    await withCheckedContinuation { continuation in
      let due = ContinuousClock.now + limit
      let (id, mustWatch) = state.withLock { state -> (UInt64?, Bool) in
        guard state.overdue == 0 else { return (nil, false) }
        state.lastID += 1
        state.waiting[state.lastID] = Waiting(due: due, continuation: continuation)
        defer { state.isWatched = true }
        return (state.lastID, !state.isWatched)
      }
      guard let id else { return continuation.resume(returning: nil) }
      if mustWatch { Task { [weak self] in await self?.watch() } }
      begin { [self] in found($0, id) }
    }
  }

  private func found(_ found: Found, _ id: UInt64) {
    let waiting = state.withLock { state in
      let waiting = state.waiting.removeValue(forKey: id)
      if waiting == nil { state.overdue -= 1 }
      return waiting
    }
    waiting?.continuation.resume(returning: found)
  }

  /// Ends the waits of overdue look-ups, until none waits.
  private func watch() async {
    while true {
      let (given, isOver) = state.withLock { state -> ([Waiting], Bool) in
        let now = ContinuousClock.now
        let due = state.waiting.filter { $0.value.due <= now }
        for id in due.keys { state.waiting[id] = nil }
        state.overdue += due.count
        if state.waiting.isEmpty { state.isWatched = false }
        return (Array(due.values), state.waiting.isEmpty)
      }
      for waiting in given { waiting.continuation.resume(returning: nil) }
      if isOver { return }
      try? await Task.sleep(for: Self.interval)
    }
  }
}
