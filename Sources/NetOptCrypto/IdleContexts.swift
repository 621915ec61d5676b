import NetOptLocking

/// Contexts of libcrypto that no caller uses at present. Creating a context costs more than hashing a short
/// text, so the contexts are kept for later callers. Safe to use from any thread.
final class IdleContexts<Context: Sendable>: Sendable {
  /// The maximum number of contexts that are kept. At most one caller per processor core runs at a time, so
  /// more contexts would hardly ever be used.
  private static var most: Int { 16 }

  private let contexts = Locked<[Context]>([])

  /// Removes and returns a context for one caller; `nil` if none is idle.
  func take() -> Context? { contexts.withLock { $0.popLast() } }

  /// Keeps a context that its caller no longer uses, or frees the context if `most` are kept already.
  func put(back context: Context) {
    contexts.withLock { if $0.count < Self.most { $0.append(context) } }
  }
}
