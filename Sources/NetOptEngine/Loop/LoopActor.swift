/// An actor that runs on an event loop.
public protocol LoopActor: Actor {
  /// The event loop. The actor uses the loop as its executor.
  nonisolated var loop: EventLoop { get }
}

extension LoopActor {
  /// Runs a closure on the actor from code that already runs on its loop: callbacks of a C library or of the
  /// loop.
  ///
  /// This does the same as `assumeIsolated`, but faster. `assumeIsolated` asks the runtime for the current
  /// executor. This function only compares the current thread with the loop's thread.
  ///
  /// - Parameters:
  ///   - argument: passed to `body`, so that the closure captures nothing and needs no allocation.
  ///   - body: called before this function returns.
  /// - Precondition: the caller is on the loop's thread.
  @inlinable @inline(__always)
  public nonisolated func onLoop<Argument>(
    _ argument: Argument, _ body: @escaping (isolated Self, Argument) -> Void
  ) {
    precondition(loop.isCurrent, "not on the event loop's thread")
    // The two types differ only in the isolation that the compiler sees, and the precondition has checked the
    // isolation. The standard library implements assumeIsolated in the same way.
    unsafeBitCast(body, to: ((Self, Argument) -> Void).self)(self, argument)
  }
}
