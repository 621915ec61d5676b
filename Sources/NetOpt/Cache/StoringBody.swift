import NetOptCaching
import NetOptCore
import NetOptLocking

/// A response body that keeps its bytes while the caller reads it, and stores them at its end. Beyond the
/// size limit it only passes the bytes on.
///
/// Normally the reader sets the pace. When other calls wait for the body too, a task reads ahead of the
/// reader, up to the limit. Of the task and the reader, the first to need a further chunk reads it, and the
/// other waits.
final class StoringBody: BodySource {
  private struct State {
    var chunks = KeptChunks()
    /// The number of bytes that this body has reserved in the cache.
    var count = 0
    var isReading = false
    var isReadAhead = false
    /// The end of the body: `.some(nil)` when the body is complete, an error when it failed, `nil` before the
    /// end.
    var end: NetOptError??
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private enum Step {
    case chunk([UInt8])
    case end(NetOptError?)
    case wait
    case read
  }

  private let base: ResponseBody
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
    // If the body is not complete, a waiting call fetches it again.
    pendingEntry.leader?.handOver()
  }

  var timings: Timings { base.timings }

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

  private func nextStep() -> Step {
    state.withLock { state in
      if let chunk = state.chunks.take() { return .chunk(chunk) }
      if let end = state.end { return .end(end) }
      if state.isReading { return .wait }
      state.isReading = true
      return .read
    }
  }

  /// Starts a task that reads the body ahead of its reader, while the chunks are kept.
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

  private func nextReadAheadStep() -> Step {
    state.withLock { state in
      if state.end != nil || !state.chunks.areKept || Task.isCancelled { return .end(nil) }
      if state.isReading { return .wait }
      state.isReading = true
      return .read
    }
  }

  /// Waits for the chunk that the other side is reading.
  private func wait() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        // `Task.isCancelled` is read once under the lock: it may become true at any moment, whoever holds the
        // lock.
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

  private func wake() {
    let waiting = state.withLock { state in
      defer { state.waiting = [] }
      return state.waiting
    }
    for continuation in waiting { continuation.resume() }
  }

  /// Reads the next chunk.
  private func read() async {
    var iterator = base.makeAsyncIterator()
    do throws(NetOptError) {
      receive(try await iterator.next())
    } catch {
      fail(error)
    }
    wake()
  }

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

  /// Stores the response before the reader sees the end, so that the reader's next call does not get an older
  /// response.
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
