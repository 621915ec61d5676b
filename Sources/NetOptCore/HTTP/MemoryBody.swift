import NetOptLocking

/// Receives the end of a body, once.
package protocol BodyEndObserver: Sendable {
  /// The body was read to its end.
  func bodyDidEnd(_ timings: Timings)
  /// The body failed, or was released before it was read to its end.
  func bodyDidFail(_ error: NetOptError)
}

extension BodyEndObserver {
  /// Reports that the body was released before it was read to its end.
  package func bodyWasReleased() {
    bodyDidFail(
      NetOptError(.cancelled, phase: .receive, "the program released the body before it read the end"))
  }
}

/// A body that is completely in memory.
final class MemoryBody: BodySource {
  private struct State {
    var rest: [UInt8]
    var isBegun = false
    var observer: (any BodyEndObserver)?
  }

  private let state: Locked<State>
  let timings: Timings

  init(_ bytes: [UInt8], _ timings: Timings) {
    state = Locked(State(rest: bytes))
    self.timings = timings
  }

  deinit { state.withLock { $0.observer.take() }?.bodyWasReleased() }

  /// Sets the observer of the body's end. Call this before the body is read.
  func observe(_ observer: any BodyEndObserver) { state.withLock { $0.observer = observer } }

  /// The body, or `nil` if reading has begun.
  var unread: [UInt8]? { state.withLock { $0.isBegun ? nil : $0.rest } }

  func next() async throws(NetOptError) -> [UInt8]? {
    let chunk = take(all: false)
    return chunk.isEmpty ? nil : chunk
  }

  /// Returns the rest of the body. Reports the end of the body if `all` is true or nothing is left.
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
