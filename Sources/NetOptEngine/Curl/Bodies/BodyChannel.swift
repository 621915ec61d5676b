import NetOptCore
import NetOptLocking

/// Carries a response's body from the loop to the task that reads it. Safe to use from all threads.
final class BodyChannel: Sendable {
  private struct State {
    /// The chunks that the reader has not taken.
    var chunks: [[UInt8]] = []
    /// The number of bytes in `chunks`.
    var unread = 0
    /// How the body ended; `nil` before its end.
    var end: Result<Void, NetOptError>?
    /// The continuation of the task that waits for the next chunk or the end; `nil` if no task waits. It is
    /// resumed with `true`. Only a second task that tries to wait gets `false`, at once.
    var reader: UnsafeContinuation<Bool, Never>?
    /// Whether the transfer is paused because the reader was behind, and `poll` must ask for it to be resumed
    /// when at most `lowWater` bytes are unread.
    var isPaused = false
    /// The timings of the call so far, as the loop last reported them.
    var timings: Timings
    /// Is told of the end, because the reader has released the body before it; `nil` otherwise.
    var observer: (any BodyEndObserver)?
    /// Whether the reader has released the body. `unread` then counts all bytes that it has not read.
    var isReleased = false
  }

  private let state: Locked<State>
  /// The number of unread bytes at or below which a paused transfer resumes.
  private let lowWater: Int

  /// Creates a channel without chunks.
  ///
  /// - Parameter lowWater: the number of unread bytes at or below which a paused transfer resumes.
  init(lowWater: Int, timings: Timings) {
    self.lowWater = lowWater
    state = Locked(State(timings: timings))
  }

  /// The timings of the call so far, as the loop last reported them.
  var timings: Timings { state.withLock { $0.timings } }

  // MARK: From the loop

  /// Adds received chunks, and wakes the reader if it waits.
  ///
  /// - Parameters:
  ///   - end: how the body ended; `nil` if more may follow.
  ///   - isPaused: whether the transfer is paused because the reader was behind.
  /// - Returns: the number of unread bytes that the channel keeps, the number of unread bytes of a released
  ///   body, and whether the caller must resume the paused transfer now.
  func push(
    _ chunks: [[UInt8]], end: Result<Void, NetOptError>?, isPaused: Bool, timings: Timings
  ) -> (unread: Int, released: Int, resumes: Bool) {
    let (reader, observer, unread, released, resumes) = state.withLock { state in
      for chunk in chunks {
        if !state.isReleased { state.chunks.append(piece: chunk) }
        state.unread += chunk.count
      }
      if state.end == nil { state.end = end }
      state.timings = timings
      // The reader may have caught up since the transfer paused. No later `poll` would then ask for the
      // transfer to be resumed, so the caller of `push` must resume it.
      let resumes = isPaused && (state.isReleased || state.unread <= lowWater)
      state.isPaused = isPaused && !resumes
      let reader = state.chunks.isEmpty && state.end == nil ? nil : state.reader.take()
      let observer = state.end == nil ? nil : state.observer.take()
      return (
        reader, observer, state.isReleased ? 0 : state.unread, state.isReleased ? state.unread : 0, resumes
      )
    }
    reader?.resume(returning: true)
    if let observer, let end {
      // The observers are the program's code, which must not run on the loop.
      Task {
        // Nobody wants the rest, so it does not matter why it did not come.
        if case .success = end { observer.bodyDidEnd(timings) } else { observer.bodyWasReleased() }
      }
    }
    return (unread, released, resumes)
  }

  // MARK: From the reader

  /// What a reader gets from the channel.
  enum Step {
    /// The next chunk. `resumes` says whether the reader must resume the paused transfer.
    case chunk([UInt8], resumes: Bool)
    /// The body has ended, completely or with an error.
    case end(Result<Void, NetOptError>)
    /// There is no chunk at present, and the body has not ended.
    case wait
  }

  /// Removes and returns the next chunk. Returns the end if no chunk is left, or `wait` if there is neither.
  func poll() -> Step {
    state.withLock { state in
      guard !state.chunks.isEmpty else { return state.end.map { .end($0) } ?? .wait }
      let chunk = state.chunks.removeFirst()
      state.unread -= chunk.count
      let resumes = state.isPaused && state.unread <= lowWater
      if resumes { state.isPaused = false }
      return .chunk(chunk, resumes: resumes)
    }
  }

  /// Waits until there may be a chunk or the end.
  ///
  /// - Throws: `invalidRequest` when another task already waits.
  func wait() async throws(NetOptError) {
    let isOnlyReader = await withUnsafeContinuation { (reader: UnsafeContinuation<Bool, Never>) in
      let answer: Bool? = state.withLock { state in
        if !state.chunks.isEmpty || state.end != nil { return true }
        if state.reader != nil { return false }
        state.reader = reader
        return nil
      }
      if let answer { reader.resume(returning: answer) }
    }
    guard isOnlyReader else {
      throw NetOptError(.invalidRequest, phase: .receive, "a body can be read by one task at a time")
    }
  }

  /// Tells an observer how the body ends: now, or when the loop reports the end.
  func tellEnd(to observer: any BodyEndObserver) {
    let ended = state.withLock { state -> (Result<Void, NetOptError>, Timings)? in
      if let end = state.end { return (end, state.timings) }
      state.observer = observer
      return nil
    }
    switch ended {
    case (.success, let timings)?: observer.bodyDidEnd(timings)
    case (.failure(let error), _)?: observer.bodyDidFail(error)
    case nil: break
    }
  }

  /// Drops what was not read. Later chunks are only counted.
  ///
  /// - Returns: the number of bytes that were not read; `nil` if the body has ended.
  func release() -> Int? {
    state.withLock { state in
      guard state.end == nil else { return nil }
      state.chunks = []
      state.isReleased = true
      return state.unread
    }
  }
}

/// The reader's end of a `BodyChannel`. If it is released before the end of the body has arrived, it ends the
/// exchange, at once or after a small rest of the body (`CurlMulti.release`).
final class StreamedBody: BodySource {
  private let channel: BodyChannel
  private let exchange: Exchange

  init(_ channel: BodyChannel, of exchange: Exchange) {
    self.channel = channel
    self.exchange = exchange
  }

  deinit {
    if let unread = channel.release() { exchange.release(unread: unread) }
  }

  var timings: Timings { channel.timings }

  func tellEnd(to observer: any BodyEndObserver) { channel.tellEnd(to: observer) }

  func next() async throws(NetOptError) -> [UInt8]? {
    while true {
      switch channel.poll() {
      case .chunk(let chunk, let resumes):
        if resumes { exchange.resumeReceiving() }
        return chunk
      case .end(let result):
        try result.get()
        return nil
      case .wait:
        let result: Result<Void, NetOptError> = await withTaskCancellationHandler {
          do throws(NetOptError) {
            try await channel.wait()
            return .success(())
          } catch { return .failure(error) }
        } onCancel: {
          exchange.cancel()
        }
        try result.get()
      }
    }
  }
}
