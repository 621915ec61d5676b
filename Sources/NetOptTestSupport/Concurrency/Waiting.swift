import NetOptCore

/// Waits for a condition that nobody announces, such as a line in another program's log, by asking every 2 ms.
///
/// - Parameters:
///   - what: the condition in words, for the error.
///   - limit: how long to wait before it counts as failed. Default: 60 s, which is for what hangs and leaves room for a
///     sanitizer on a busy machine; it is never waited out when the condition holds.
///   - isolation: the actor on which the condition is asked; the caller's unless it is given.
///   - condition: the condition.
/// - Throws: `TestSupportError` when the limit passes; what `condition` throws; `CancellationError`.
public func wait(
  for what: String, within limit: Duration = .seconds(60), isolation: isolated (any Actor)? = #isolation,
  until condition: () async throws -> Bool
) async throws {
  let clock = SystemTimeSource()
  let end = clock.now() + limit
  while try await !condition() {
    guard clock.now() < end else {
      throw TestSupportError("waited \(limit) for \(what), in vain")
    }
    try await Task.sleep(for: .milliseconds(2))
  }
}
