/// An actor that lives on an event loop.
public protocol LoopActor: Actor {
  /// The loop, whose executor is the actor's.
  nonisolated var loop: EventLoop { get }
}

extension LoopActor {
  /// Does something on the actor from code that runs on its loop: what a C library or the loop itself calls.
  ///
  /// It is what `assumeIsolated` does, which has the runtime find out whose executor it is on. The loop knows its thread.
  ///
  /// - Parameters:
  ///   - argument: is handed on, so that the closure need not capture anything: then it is not allocated.
  ///   - body: is called before this returns.
  /// - Precondition: the caller is on the loop's thread.
  @inlinable @inline(__always)
  public nonisolated func onLoop<Argument>(
    _ argument: Argument, _ body: @escaping (isolated Self, Argument) -> Void
  ) {
    precondition(loop.isCurrent, "not on the event loop's thread")
    // The two types differ in nothing but the compiler's view of the isolation, which was checked above; the standard
    // library's assumeIsolated is made like this.
    unsafeBitCast(body, to: ((Self, Argument) -> Void).self)(self, argument)
  }
}
