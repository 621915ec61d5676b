import NetOptLocking

/// The spans that wait for their export, in the order in which they ended. Safe from any thread.
final class SpanQueue: Sendable {
  /// The most spans that wait. Further ones are dropped: a collector that does not respond must not fill the
  /// memory.
  static let most = 4096
  /// The number of spans that are exported together, and early.
  static let batch = 512

  private struct State {
    var spans: [Span] = []
    /// The number of spans that were dropped.
    var dropped = 0
    /// What the exporter waits for: so many spans.
    var waiting: (count: Int, FirstValue<Void>)?
    /// Whether nobody waits any longer, and whether nobody takes spans any longer.
    var (isClosed, isEnded) = (false, false)
  }

  private let state = Locked(State())

  /// Adds a span, or drops it when there are too many.
  func append(_ span: Span) {
    let waiter = state.withLock { state -> FirstValue<Void>? in
      guard state.spans.count < Self.most, !state.isEnded else {
        state.dropped += 1
        return nil
      }
      state.spans.append(span)
      guard let waiting = state.waiting, state.spans.count >= waiting.count else { return nil }
      state.waiting = nil
      return waiting.1
    }
    waiter?.set(())
  }

  /// Waits until there are spans, the queue is closed, or the task is cancelled. Only one task may wait at a
  /// time.
  func wait(for count: Int) async {
    let waiter = FirstValue<Void>()
    let isReady = state.withLock { state in
      let isReady = state.isClosed || state.spans.count >= count
      if !isReady { state.waiting = (count, waiter) }
      return isReady
    }
    if !isReady { await waiter.wait() }
  }

  /// The number of spans that wait.
  var count: Int { state.withLock(\.spans.count) }

  /// Removes and returns the first spans, at most a batch.
  func take() -> [Span] {
    state.withLock { state in
      let spans = Array(state.spans.prefix(Self.batch))
      state.spans.removeFirst(spans.count)
      return spans
    }
  }

  /// Ends all waits, those that begin later too.
  func close() {
    let waiter = state.withLock { state in
      state.isClosed = true
      return state.waiting.take()?.1
    }
    waiter?.set(())
  }

  /// Whether `close` was called.
  var isClosed: Bool { state.withLock(\.isClosed) }

  /// Drops the spans that are left, and those that come later.
  func end() {
    state.withLock { state in
      state.isEnded = true
      state.dropped += state.spans.count
      state.spans = []
    }
  }

  /// Counts spans that were taken and could not be exported.
  func countDropped(_ count: Int) { state.withLock { $0.dropped += count } }

  /// The number of spans that were dropped.
  var dropped: Int { state.withLock(\.dropped) }
}
