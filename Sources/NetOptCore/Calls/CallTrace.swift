import Synchronization

/// The span of a call, below which each attempt has a span of its own. Safe from any thread.
package final class CallTrace: Sendable {
  /// The span of the call.
  package let context: TraceContext
  /// The span of the program that makes the call; `nil` when the call begins the trace.
  package let parentID: UInt64?
  /// The number of attempts that have begun.
  private let attempts = Atomic(0)

  /// Creates the trace of a call.
  package init(_ context: TraceContext, parentID: UInt64?) {
    self.context = context
    self.parentID = parentID
  }

  /// Counts an attempt that begins, and returns how many began before it.
  package func beginAttempt() -> Int { attempts.wrappingAdd(1, ordering: .relaxed).oldValue }
}
