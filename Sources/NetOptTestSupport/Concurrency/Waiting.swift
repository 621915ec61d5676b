import NetOptCore

/// Waits for a condition by evaluating it every 2 ms. Use this for a condition that sends no notification,
/// such as a line in the log of another program.
///
/// - Parameters:
///   - what: the condition in words, for the error.
///   - limit: the maximum waiting time. Default: 60 s. The default is so long that only code that hangs
///     reaches it, even with a sanitizer on a busy machine. The function returns as soon as the condition
///     holds.
///   - isolation: the actor that evaluates the condition. Default: the actor of the caller.
///   - condition: the condition.
/// - Throws: `TestSupportError` when the limit passes; the errors of `condition`; `CancellationError`.
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
