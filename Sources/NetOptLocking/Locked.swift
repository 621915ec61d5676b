public import Synchronization

/// A value behind a lock: a `Mutex` that the thread sanitizer understands.
///
/// When threads compete for a `Mutex`, its library takes the lock. That library is not instrumented. So the
/// sanitizer does not see that one holder has released the lock before the next holder takes it, and it
/// reports false races. So each holder reads the atomic `order` when it gets the lock, and writes `order`
/// before it releases the lock. The sanitizer learns the order of the holders from this. Without the
/// sanitizer, the read and the write are two plain moves.
///
/// The type is public, in a module that users of netopt do not see. The compiler specialises generic code of
/// another module only if the code is public. Otherwise each lock would look its types up at run time.
public struct Locked<Value>: ~Copyable, Sendable {
  @usableFromInline let mutex: Mutex<Value>
  /// Tells the thread sanitizer in which order threads held the lock. The value of the flag has no meaning.
  @usableFromInline let order = Atomic<Bool>(false)

  /// Puts a value behind a lock.
  @inlinable @inline(__always)
  public init(_ value: consuming sending Value) { mutex = Mutex(value) }

  /// Runs a closure with exclusive access to the value. The closure must neither block nor take the same
  /// lock.
  ///
  /// - Returns: the result of the closure.
  /// - Throws: the error of the closure.
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
