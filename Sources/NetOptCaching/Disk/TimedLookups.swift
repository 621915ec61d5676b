import NetOptLocking

/// Disk look-ups with a time limit. A look-up takes long when another process locks the database, or when a
/// file system hangs. After the limit the look-up counts as a miss, and the request goes to the origin.
///
/// A look-up is overdue when it has exceeded its limit and still runs. While a look-up is overdue, new
/// look-ups are misses and do not begin. They would only wait behind the overdue one.
final class TimedLookups<Found: Sendable>: Sendable {
  /// A caller that waits for its look-up.
  private struct Waiting {
    /// When the look-up exceeds its limit.
    let due: ContinuousClock.Instant
    /// Resumes the caller with the result, or with `nil` for a miss.
    let continuation: CheckedContinuation<Found?, Never>
  }

  private struct State {
    /// The callers that wait, by the number of their look-up.
    var waiting: [UInt64: Waiting] = [:]
    /// The number of the look-up that began last. Numbers count up from 1.
    var lastID: UInt64 = 0
    /// How many look-ups are overdue.
    var overdue = 0
    /// Whether the task that runs `watch` exists.
    var isWatched = false
  }

  /// The interval at which `watch` compares the clock with the limits.
  private static var interval: Duration { .milliseconds(20) }

  private let state = Locked(State())

  /// Begins a look-up and waits for its result.
  ///
  /// - Parameters:
  ///   - limit: how long to wait. The wait may last about 20 ms longer.
  ///   - begin: begins the look-up. Its argument is a closure that `begin` must call once with the result, on
  ///     any thread.
  /// - Returns: `nil` when the look-up exceeds the limit, or does not begin because another one is overdue.
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

  /// Passes the result of a look-up to its caller. If the look-up was overdue, its caller has already got
  /// `nil`, and the result is dropped.
  private func found(_ found: Found, _ id: UInt64) {
    let waiting = state.withLock { state in
      let waiting = state.waiting.removeValue(forKey: id)
      if waiting == nil { state.overdue -= 1 }
      return waiting
    }
    waiting?.continuation.resume(returning: found)
  }

  /// Resumes callers with `nil` when their look-ups become overdue. Returns when no caller waits.
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
