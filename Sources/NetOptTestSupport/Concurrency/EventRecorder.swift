/// Records events in order, so that a test can inspect them or wait for them.
public final class EventRecorder<Event: Sendable>: Sendable {
  /// The recorded events, in order.
  private let recorded = AsyncCondition<[Event]>([])

  /// Creates an empty recorder.
  public init() {}

  /// Records an event. Thread-safe.
  public func record(_ event: Event) { recorded.update { $0.append(event) } }

  /// The events recorded so far, in order.
  public var events: [Event] { recorded.state }

  /// Suspends the task until the recorded events meet a condition.
  ///
  /// - Parameters:
  ///   - what: the condition in words, for the error.
  ///   - limit: the maximum waiting time. Default: 60 s.
  ///   - holds: the condition. It gets all events recorded so far, and is evaluated at once and after each
  ///     event.
  /// - Returns: the recorded events.
  /// - Throws: `TestSupportError` with the events, when the limit passes or the task is cancelled.
  @discardableResult
  public func wait(
    for what: String, within limit: Duration = .seconds(60),
    until holds: @escaping @Sendable ([Event]) -> Bool
  ) async throws -> [Event] {
    let recorded = recorded
    let held = await withTaskGroup(of: Bool.self) { group in
      group.addTask { await recorded.wait(until: holds) }
      group.addTask {
        // The group cancels this task when the condition holds.
        try? await Task.sleep(for: limit)
        return false
      }
      defer { group.cancelAll() }
      return await group.next() ?? false
    }
    let events = events
    guard held else { throw TestSupportError("waited \(limit) for \(what), in vain; there were \(events)") }
    return events
  }
}
