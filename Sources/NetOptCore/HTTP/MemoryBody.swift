import NetOptLocking

/// Is told once how a body ended.
package protocol BodyEndObserver: Sendable {
  /// Reports that the body was read to its end, or had arrived in full when the program released it.
  ///
  /// - Parameter timings: the durations of the phases of the exchange.
  func bodyDidEnd(_ timings: Timings)
  /// Reports that the body failed, or that the program released it before it had arrived.
  func bodyDidFail(_ error: NetOptError)
}

extension BodyEndObserver {
  /// Reports that the program released the body before it had arrived.
  package func bodyWasReleased() {
    bodyDidFail(
      NetOptError(.cancelled, phase: .receive, "the program released the body before it had arrived"))
  }
}

/// The source of a body that is completely in memory.
final class MemoryBody: BodySource {
  private struct State {
    /// The bytes that were not read.
    var rest: [UInt8]
    /// Whether reading has begun.
    var isBegun = false
    /// The observer of the body's end; `nil` if there is none, or after it was told how the body ended.
    var observer: (any BodyEndObserver)?
  }

  private let state: Locked<State>
  /// The durations of the phases of the exchange. They do not change, because the body is complete.
  let timings: Timings

  init(_ bytes: [UInt8], _ timings: Timings) {
    state = Locked(State(rest: bytes))
    self.timings = timings
  }

  deinit { state.withLock { $0.observer.take() }?.bodyDidEnd(timings) }

  func tellEnd(to observer: any BodyEndObserver) { observer.bodyDidEnd(timings) }

  /// Sets the observer of the body's end. Call this before reading begins. If the body is empty, there is
  /// nothing to read, and this call tells the observer of the end.
  ///
  /// - Returns: false if the body has an observer already, such as that of another client.
  func observe(_ observer: any BodyEndObserver) -> Bool {
    let (isOver, isObserved) = state.withLock { state in
      let isObserved = state.observer != nil
      if !state.rest.isEmpty, !isObserved { state.observer = observer }
      return (state.rest.isEmpty, isObserved)
    }
    if isOver { observer.bodyDidEnd(timings) }
    return isOver || !isObserved
  }

  /// The whole body; `nil` if reading has begun. Does not begin the reading.
  var unread: [UInt8]? { state.withLock { $0.isBegun ? nil : $0.rest } }

  /// Returns the whole rest of the body as one chunk; `nil` at the end.
  func next() async throws(NetOptError) -> [UInt8]? {
    let chunk = take(all: false)
    return chunk.isEmpty ? nil : chunk
  }

  /// Returns all bytes that were not read. Later calls return no bytes.
  ///
  /// - Parameter all: whether the caller takes the whole body and does not call this again. If true, this
  ///   call tells the observer of the end. If false, the call that returns no bytes tells the observer.
  func take(all: Bool) -> [UInt8] {
    let (rest, observer) = state.withLock { state in
      let rest = state.rest
      state.rest = []
      state.isBegun = true
      return (rest, all || rest.isEmpty ? state.observer.take() : nil)
    }
    observer?.bodyDidEnd(timings)
    return rest
  }
}
