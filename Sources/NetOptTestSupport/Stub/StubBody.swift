import NetOptCore
import NetOptLocking

/// The body of a response of a `StubTransport`. It makes a chunk only when the consumer asks for it.
final class StubBody: BodySource {
  private struct State {
    /// The index of the next chunk.
    var next = 0
    /// When the body ended, on the clock of the transport, and with which error; `nil` while the body is
    /// open. The error is `nil` for a complete body and for a body that was released before its end.
    var ended: (at: MonotonicInstant, error: NetOptError?)?
  }

  private let response: StubResponse
  /// The durations of the phases of the call until the response head arrived.
  private let headTimings: Timings
  /// When the response head arrived, on the clock of the transport.
  private let headAt: MonotonicInstant
  /// The deadline of the call, on the clock of the transport; `nil` for none.
  private let deadline: MonotonicInstant?
  private let transport: StubTransport
  /// The connection of the response; `nil` when the request does not pool its connection
  /// (`ConnectionUse.fresh`). An HTTP/1.1 connection goes back to the pool when the body has been read to its
  /// end. An HTTP/2 connection never leaves the pool.
  private let connection: StubTransport.Connection?
  private let state = Locked(State())

  /// The rest of a body that is released counts as arrived, as long as it has an end.
  func tellEnd(to observer: any BodyEndObserver) {
    if response.end == .complete { observer.bodyDidEnd(timings) } else { observer.bodyWasReleased() }
  }

  init(
    _ response: StubResponse, _ headTimings: Timings, at headAt: MonotonicInstant,
    deadline: MonotonicInstant?, on connection: StubTransport.Connection?,
    of transport: StubTransport
  ) {
    self.response = response
    self.headTimings = headTimings
    self.deadline = deadline
    self.connection = connection
    self.transport = transport
    self.headAt = headAt
    transport.state.update { $0.openBodies += 1 }
  }

  deinit { end(nil) }

  var timings: Timings {
    var timings = headTimings
    let end = state.withLock { $0.ended?.at } ?? transport.timeSource.now()
    timings.transfer = end - headAt
    return timings
  }

  func next() async throws(NetOptError) -> [UInt8]? {
    if let ended = state.withLock({ $0.ended }) {
      guard let error = ended.error else { return nil }
      throw error
    }
    if let error = interruption() { throw end(with: error) }
    let index = state.withLock { state in
      defer { state.next += 1 }
      return state.next
    }
    if let chunk = response.chunk(index) { return chunk }
    switch response.end {
    case .complete:
      end(nil)
      if let connection, !connection.multiplexes { transport.keep(connection) }
      return nil
    case .cut:
      throw end(
        with: NetOptError(.receiveFailed, phase: .receive, "the connection was reset before the body's end"))
    case .stalled:
      await waitForInterruption()
      throw end(with: interruption() ?? Self.cancelled)
    }
  }

  private static let cancelled = NetOptError(
    .cancelled, phase: .receive, "the call was cancelled while its body was read")

  /// Returns the error that must end the body now: shutdown, deadline or cancellation. Returns `nil` if the
  /// body can continue.
  private func interruption() -> NetOptError? {
    if transport.state.state.isShutDown { return StubTransport.shutDownError(nil) }
    if let deadline, transport.timeSource.now() >= deadline {
      return NetOptError(.timeout, phase: .receive, "the call's time limit passed while its body was read")
    }
    return Task.isCancelled ? Self.cancelled : nil
  }

  /// Suspends the task until the shutdown of the transport, the deadline, or the cancellation of the task.
  private func waitForInterruption() async {
    let (transport, deadline) = (transport, deadline)
    await withTaskGroup(of: Void.self) { group in
      group.addTask { _ = await transport.state.wait { $0.isShutDown } }
      if let deadline { group.addTask { try? await transport.timeSource.sleep(until: deadline) } }
      await group.next()
      group.cancelAll()
    }
  }

  /// Ends the body with an error, and returns the error.
  private func end(with error: NetOptError) -> NetOptError {
    end(error)
    return error
  }

  /// Ends the body. Only the first call has an effect.
  ///
  /// - Parameter error: the error that later calls of `next` throw; `nil` for none.
  private func end(_ error: NetOptError?) {
    let now = transport.timeSource.now()
    let isFirst = state.withLock { state in
      defer { if state.ended == nil { state.ended = (now, error) } }
      return state.ended == nil
    }
    if isFirst { transport.state.update { $0.openBodies -= 1 } }
  }
}
