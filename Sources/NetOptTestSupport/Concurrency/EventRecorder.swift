/// Keeps what happened, in its order, for a test to look at or wait for.
public final class EventRecorder<Event: Sendable>: Sendable {
  private let recorded = AsyncCondition<[Event]>([])

  /// Makes an empty recorder.
  public init() {}

  /// Notes an event. Safe from any thread.
  public func record(_ event: Event) { recorded.update { $0.append(event) } }

  /// What was noted so far.
  public var events: [Event] { recorded.state }

  /// Suspends the task until the events are as a test wants them.
  ///
  /// - Parameters:
  ///   - what: the condition in words, for the error.
  ///   - limit: how long to wait before it counts as failed. Default: 60 s.
  ///   - holds: the condition; asked after each event.
  /// - Returns: the events that met it.
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
        // Cancelled as soon as the condition holds.
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
