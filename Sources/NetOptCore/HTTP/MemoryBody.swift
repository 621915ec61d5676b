import NetOptLocking

/// Who is told once how a body ended.
package protocol BodyEndObserver: Sendable {
  /// It has been read to its end.
  func bodyDidEnd(_ timings: Timings)
  /// It ended early, or was let go before its end was read.
  func bodyDidFail(_ error: NetOptError)
}

extension BodyEndObserver {
  /// The body was let go before its end was read.
  package func bodyWasLetGo() {
    bodyDidFail(
      NetOptError(.cancelled, phase: .receive, "the body was let go before its end was read"))
  }
}

/// A body that is in memory from the start.
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

  deinit { state.withLock { $0.observer.take() }?.bodyWasLetGo() }

  /// Has somebody told of the end. To be called before the body is read.
  func observe(_ observer: any BodyEndObserver) { state.withLock { $0.observer = observer } }

  /// The body, unless somebody has begun to read it.
  var unread: [UInt8]? { state.withLock { $0.isBegun ? nil : $0.rest } }

  func next() async throws(NetOptError) -> [UInt8]? {
    let chunk = take(all: false)
    return chunk.isEmpty ? nil : chunk
  }

  /// The rest of the body. Taking all of it, or nothing any more, is the end.
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
