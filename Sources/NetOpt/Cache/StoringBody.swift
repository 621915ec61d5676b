import NetOptCaching
import NetOptCore
import NetOptLocking

/// A response body that passes chunks on to its reader, keeps them, and gives the whole body to the cache at
/// its end. When the body exceeds a size limit, it stops keeping chunks and only passes them on.
///
/// Normally the reader sets the pace. When other calls wait for the body too, a task reads ahead of the
/// reader as long as chunks are kept. When both need the next chunk, the first of them reads it, and the
/// other waits.
final class StoringBody: BodySource {
  private struct State {
    var chunks = KeptChunks()
    /// The number of kept bytes, which this body has reserved in the cache (`ResponseCache.reserve`).
    var count = 0
    /// Whether the reader or the read-ahead task is reading a chunk from `base`.
    var isReading = false
    /// Whether `readAhead` was called. It starts the read-ahead task at most once.
    var isReadAhead = false
    /// How the body ended: `nil` before its end, `.some(nil)` when it is complete, and the error when it
    /// failed.
    var end: NetOptError??
    /// The continuations of those that wait for the chunk that the other side reads.
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  /// What the reader or the read-ahead task does next.
  private enum Step {
    /// The reader takes this chunk.
    case chunk([UInt8])
    /// The body has ended, with an error or complete; or the read-ahead task has nothing more to do.
    case end(NetOptError?)
    /// The other side is reading a chunk: wait for it.
    case wait
    /// Read the next chunk from `base`.
    case read
  }

  /// The body from the transport.
  private let base: ResponseBody
  /// Receives the whole body at its end, or learns why there is none.
  private let pendingEntry: PendingEntry
  private let state = Locked(State())

  init(_ base: ResponseBody, _ pendingEntry: PendingEntry) {
    self.base = base
    self.pendingEntry = pendingEntry
  }

  deinit {
    let (count, isReleasedEarly) = state.withLock { ($0.count, $0.end == nil && $0.chunks.areKept) }
    pendingEntry.cache.release(count)
    if isReleasedEarly { pendingEntry.discardUnread() }
    // If the body is not complete, a waiting call becomes the leader. After the end this does nothing.
    pendingEntry.leader?.handOver()
  }

  var timings: Timings { base.timings }

  func tellEnd(to observer: any BodyEndObserver) { base.tellEnd(to: observer) }

  func next() async throws(NetOptError) -> [UInt8]? {
    while true {
      switch nextStep() {
      case .chunk(let chunk): return chunk
      case .end(let error):
        if let error { throw error }
        return nil
      case .read: await read()
      case .wait:
        await wait()
        if Task.isCancelled { throw Self.cancelled }
      }
    }
  }

  /// What the reader does next. After `.read` the reader must call `read`.
  private func nextStep() -> Step {
    state.withLock { state in
      if let chunk = state.chunks.take() { return .chunk(chunk) }
      if let end = state.end { return .end(end) }
      if state.isReading { return .wait }
      state.isReading = true
      return .read
    }
  }

  /// Starts the task that reads ahead of the reader, unless it was started before, the body has ended, or
  /// chunks are no longer kept.
  func readAhead() {
    let begins = state.withLock { state in
      defer { state.isReadAhead = true }
      return !state.isReadAhead && state.end == nil && state.chunks.areKept
    }
    guard begins else { return }
    pendingEntry.cache.inBackground { [self] in
      while true {
        switch nextReadAheadStep() {
        case .read: await read()
        case .wait: await wait()
        case .chunk, .end: return
        }
      }
    }
  }

  /// What the read-ahead task does next. After `.read` the task must call `read`.
  private func nextReadAheadStep() -> Step {
    state.withLock { state in
      if state.end != nil || !state.chunks.areKept || Task.isCancelled { return .end(nil) }
      if state.isReading { return .wait }
      state.isReading = true
      return .read
    }
  }

  /// Waits until the reader or the read-ahead task, whichever is reading, has its chunk. Returns early when
  /// the task is cancelled.
  private func wait() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        // `Task.isCancelled` may become true at any moment, even while the lock is held. So it is read only
        // once.
        let waits = state.withLock { state in
          guard state.isReading, !Task.isCancelled else { return false }
          state.waiting.append(continuation)
          return true
        }
        if !waits { continuation.resume() }
      }
    } onCancel: {
      wake()
    }
  }

  /// Resumes all that wait.
  private func wake() {
    let waiting = state.withLock { state in
      defer { state.waiting = [] }
      return state.waiting
    }
    for continuation in waiting { continuation.resume() }
  }

  /// Reads the next chunk from `base`, and resumes those that wait for it.
  private func read() async {
    var iterator = base.makeAsyncIterator()
    do throws(NetOptError) {
      receive(try await iterator.next())
    } catch {
      fail(error)
    }
    wake()
  }

  /// Handles a chunk from `base`; `nil` is the end of the body. Stops keeping chunks when the cache has no
  /// memory left for unfinished bodies, or when the body exceeds the limit for entries.
  private func receive(_ chunk: [UInt8]?) {
    guard let chunk else {
      complete()
      return
    }
    // A body that only passes through needs no reservation.
    let isReserved = state.withLock(\.chunks.areKept) && pendingEntry.cache.reserve(chunk.count)
    let released = state.withLock { state -> Int? in
      state.chunks.append(chunk)
      if isReserved { state.count += chunk.count }
      guard state.chunks.areKept, !isReserved || state.count > pendingEntry.limit else { return nil }
      state.chunks.stopKeeping()
      defer { state.count = 0 }
      return state.count
    }
    if let released {
      pendingEntry.cache.release(released)
      pendingEntry.discardTooLarge()
    }
    state.withLock { $0.isReading = false }
  }

  /// Handles the end of the body. Stores the response before the reader sees the end, so that the next call
  /// of the reader's program cannot get an older response.
  private func complete() {
    let kept = state.withLock { state -> (chunks: [[UInt8]], count: Int)? in
      guard state.chunks.areKept else { return nil }
      let kept = (state.chunks.all, state.count)
      state.chunks.stopKeeping()
      state.count = 0
      return kept
    }
    if let kept {
      pendingEntry.cache.release(kept.count)
      pendingEntry.complete(Self.joined(kept.chunks, count: kept.count))
    }
    state.withLock { state in
      state.isReading = false
      state.end = .some(nil)
    }
  }

  private static func joined(_ chunks: [[UInt8]], count: Int) -> [UInt8] {
    if chunks.count == 1 { return chunks[0] }
    var body: [UInt8] = []
    body.reserveCapacity(count)
    for chunk in chunks { body += chunk }
    return body
  }

  /// Handles an error of `base`. The reader gets the error after the chunks that it has not taken.
  private func fail(_ error: NetOptError) {
    state.withLock { state in
      state.isReading = false
      state.end = error
    }
    pendingEntry.fail(error)
  }

  private static let cancelled = NetOptError(
    .cancelled, phase: .receive, "the call was cancelled while its body was read")
}
