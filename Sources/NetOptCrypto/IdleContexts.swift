import NetOptLocking

/// Contexts of libcrypto that nobody uses at the moment. To make one costs more than to hash a short text, so that each is kept
/// for the next caller. Safe to use from any thread.
final class IdleContexts<Context: Sendable>: Sendable {
  /// More callers at once than there are cores to run them have no use for a context each.
  private static var most: Int { 16 }

  private let contexts = Locked<[Context]>([])

  /// A context for the caller alone; `nil` when all are in use.
  func take() -> Context? { contexts.withLock { $0.popLast() } }

  /// Takes back a context that the caller no longer uses.
  func put(back context: Context) {
    contexts.withLock { if $0.count < Self.most { $0.append(context) } }
  }
}
