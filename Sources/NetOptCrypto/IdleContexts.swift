import NetOptLocking

/// Contexts of libcrypto that are not in use. To create a context costs more than to hash a short text, so
/// each context is kept for the next caller. Safe to use from any thread.
final class IdleContexts<Context: Sendable>: Sendable {
  /// The most contexts that are kept. More callers than cores gain nothing from a context each.
  private static var most: Int { 16 }

  private let contexts = Locked<[Context]>([])

  /// Takes a context out for one caller; `nil` when none is idle.
  func take() -> Context? { contexts.withLock { $0.popLast() } }

  /// Takes back a context that its caller no longer uses.
  func put(back context: Context) {
    contexts.withLock { if $0.count < Self.most { $0.append(context) } }
  }
}
