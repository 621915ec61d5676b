import NetOptCore
import NetOptLocking

/// The calls of a client that wait for code of the program or for a disk, outside of the transport. Each wait
/// ends at the deadline of its call, when the task is cancelled, and when the client shuts down. Safe from
/// any thread.
final class BoundedWaits: Sendable {
  private struct State {
    /// The closure that ends a wait with an error, for each wait, by the number of the wait.
    var ends: [Int: @Sendable (NetOptError) -> Void] = [:]
    var lastNumber = 0
    /// Whether the client shuts down. Then no wait begins.
    var isStopped = false
  }

  private let state = Locked(State())
  private let timeSource: any TimeSource

  init(_ timeSource: any TimeSource) { self.timeSource = timeSource }

  /// Whether the client shuts down.
  var isStopped: Bool { state.withLock(\.isStopped) }

  /// Waits for the result of work that a closure starts.
  ///
  /// - Parameters:
  ///   - what: the words after "while" in the message of a timeout, such as "the program fetched a token".
  ///   - phase: the phase of the errors.
  ///   - deadline: when the wait ends at the latest; `nil` for no limit.
  ///   - start: starts the work, and passes its result to the closure `done`. Returns another closure. This
  ///     function calls that closure when the wait has ended, because nobody needs the result any more.
  /// - Throws: the error of the work; `timeout`, `cancelled` or `shutDown`.
  func result<Value: Sendable>(
    of what: String, in phase: NetOptError.Phase, until deadline: MonotonicInstant?,
    _ start: (_ done: @escaping @Sendable (Result<Value, NetOptError>) -> Void) -> @Sendable () -> Void
  ) async throws(NetOptError) -> Value {
    let outcome = FirstValue<Result<Value, NetOptError>>()
    let number = state.withLock { state -> Int? in
      if state.isStopped { return nil }
      state.lastNumber += 1
      state.ends[state.lastNumber] = { outcome.set(.failure($0)) }
      return state.lastNumber
    }
    guard let number else { throw .shutDown }
    let timer = deadline.map { deadline in
      let remaining = max(deadline - timeSource.now(), .zero)
      return Task {
        do { try await Task.sleep(for: remaining) } catch { return }
        outcome.set(
          .failure(NetOptError(.timeout, phase: phase, "the call's time limit passed while \(what)")))
      }
    }
    let leave = start { outcome.set($0) }
    defer {
      state.withLock { $0.ends[number] = nil }
      timer?.cancel()
      leave()
    }
    let cancelled = NetOptError(.cancelled, phase: phase, "the task was cancelled")
    let result = await outcome.value(whenCancelled: .failure(cancelled))
    return try result.get()
  }

  /// Ends all waits with `shutDown`.
  func stop() {
    let ends = state.withLock { state in
      state.isStopped = true
      return state.ends
    }
    for end in ends.values { end(.shutDown) }
  }
}
