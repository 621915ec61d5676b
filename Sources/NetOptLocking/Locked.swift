public import Synchronization

/// A value behind a lock: `Mutex`, in a form that the thread sanitizer understands.
///
/// When a `Mutex` is contended it is taken inside its library, which is not instrumented, so that the sanitizer does
/// not learn that the former holder comes first and reports races that are none. An atomic that each holder reads
/// first and writes last tells it the order; without the sanitizer these are two plain moves.
///
/// It is public, in a module that users of netopt do not see, because the compiler specialises generic code of another
/// module only when it is public: each lock would look its types up at run time.
public struct Locked<Value>: ~Copyable, Sendable {
  @usableFromInline let mutex: Mutex<Value>
  @usableFromInline let order = Atomic<Bool>(false)

  /// Puts a value behind a lock.
  @inlinable @inline(__always)
  public init(_ value: consuming sending Value) { mutex = Mutex(value) }

  /// Runs a closure while nobody else has the value. It must neither wait nor take the same lock.
  ///
  /// - Returns: what the closure returns.
  /// - Throws: what the closure throws.
  @inlinable @inline(__always)
  public borrowing func withLock<Result: ~Copyable, Failure: Error>(
    _ body: (inout sending Value) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result {
    try mutex.withLock { value throws(Failure) in
      _ = order.load(ordering: .acquiring)
      defer { order.store(true, ordering: .releasing) }
      return try body(&value)
    }
  }
}
