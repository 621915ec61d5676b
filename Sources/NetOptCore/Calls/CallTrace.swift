import NetOptLocking

/// The span of a call, below which each attempt has a span of its own. Safe from any thread.
package final class CallTrace: Sendable {
  /// What may change until the first attempt begins, and what changes with each attempt.
  private struct State {
    var context: TraceContext
    var parent: TraceContext?
    var attempts = 0
    var hasResponse = false
  }

  private let state: Locked<State>
  /// What to add to the monotonic clock, to get nanoseconds since 1970. The same for all spans of the call, so
  /// that their order is true although the system's clock may be set.
  package let epoch: Int64

  /// Creates the trace of a call.
  ///
  /// - Parameter parent: the span of the program that makes the call; `nil` when the call begins the trace.
  package init(_ context: TraceContext, parent: TraceContext?, epoch: Int64) {
    state = Locked(State(context: context, parent: parent))
    self.epoch = epoch
  }

  /// The span of the call.
  package var context: TraceContext { state.withLock(\.context) }
  /// The span of the program that makes the call; `nil` when the call begins the trace.
  package var parentID: UInt64? { state.withLock { $0.parent?.spanID } }
  /// Whether an attempt got a response.
  package var hasResponse: Bool { state.withLock(\.hasResponse) }

  /// Records that an attempt got a response.
  package func recordResponse() { state.withLock { $0.hasResponse = true } }

  /// Counts an attempt that begins, and returns how many began before it. At the first one, an interceptor of
  /// the program may have put another trace into the fields. The call then continues that one.
  package func beginAttempt(_ fields: HeaderFields) -> Int {
    state.withLock { state in
      defer { state.attempts += 1 }
      if state.attempts == 0, let parent = TraceContext(fields), parent != state.parent {
        state.parent = parent
        state.context = parent.with(spanID: state.context.spanID)
      }
      return state.attempts
    }
  }
}
