import NetOptLocking

/// Look-ups on the disk, each of which is waited for only for a while. Another process may hold the database, and a file system may hang: then
/// a look-up is a miss, and the origin is asked.
///
/// While one that was given up has not come back, no other one begins: none of them could be faster, and they would pile up.
final class LookUps<Found: Sendable>: Sendable {
  private struct Waiting {
    let due: ContinuousClock.Instant
    let continuation: CheckedContinuation<Found?, Never>
  }

  private struct State {
    var waiting: [UInt64: Waiting] = [:]
    var lastID: UInt64 = 0
    /// How many were given up and have not come back.
    var overdue = 0
    /// Whether a task gives up those that are due.
    var isWatched = false
  }

  /// How often it is seen whether one is due.
  private static var interval: Duration { .milliseconds(20) }

  private let state = Locked(State())

  /// Begins a look-up, and waits for what it finds.
  ///
  /// - Parameters:
  ///   - limit: how long it is waited for, and some 20 ms more.
  ///   - begin: begins it. It calls what it is given when it has found something, from any thread.
  /// - Returns: `nil` when it took too long, or another one does.
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

  /// Gives up those that are due, until none waits.
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
