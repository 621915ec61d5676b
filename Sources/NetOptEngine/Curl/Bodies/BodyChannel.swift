import NetOptCore
import NetOptLocking

/// Carries a response's body from the loop to the task that reads it. Safe to use from all threads.
final class BodyChannel: Sendable {
  private struct State {
    var chunks: [[UInt8]] = []
    var unread = 0
    var end: Result<Void, NetOptError>?
    var reader: UnsafeContinuation<Bool, Never>?
    /// Whether the transfer waits until most of the buffered data has been read.
    var isPaused = false
    var timings: Timings
  }

  private let state: Locked<State>
  private let lowWater: Int

  /// - Parameter lowWater: the transfer resumes when at most this many bytes are unread.
  init(lowWater: Int, timings: Timings) {
    self.lowWater = lowWater
    state = Locked(State(timings: timings))
  }

  var timings: Timings { state.withLock { $0.timings } }

  // MARK: From the loop

  /// Adds received chunks.
  ///
  /// - Parameter isPaused: whether the transfer has been paused.
  /// - Returns: the number of unread bytes, and whether the paused transfer may resume.
  func push(
    _ chunks: [[UInt8]], end: Result<Void, NetOptError>?, isPaused: Bool, timings: Timings
  ) -> (unread: Int, resumes: Bool) {
    let (reader, unread, resumes) = state.withLock { state in
      for chunk in chunks {
        state.chunks.append(piece: chunk)
        state.unread += chunk.count
      }
      if state.end == nil { state.end = end }
      state.timings = timings
      // The reader may have caught up since the transfer was paused. Nothing would resume the transfer then.
      let resumes = isPaused && state.unread <= lowWater
      state.isPaused = isPaused && !resumes
      return (state.chunks.isEmpty && state.end == nil ? nil : state.reader.take(), state.unread, resumes)
    }
    reader?.resume(returning: true)
    return (unread, resumes)
  }

  // MARK: From the reader

  enum Step {
    case chunk([UInt8], resumes: Bool)
    case end(Result<Void, NetOptError>)
    case wait
  }

  /// Returns the next chunk or the end, or `wait` if there is neither.
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

  /// Whether the loop has handed over the end, even if the reader has not read it yet.
  var hasEnded: Bool { state.withLock { $0.end != nil } }
}

/// The consumer's end of a streamed body. Its deallocation before the end cancels the transfer.
final class StreamedBody: BodySource {
  private let channel: BodyChannel
  private let exchange: Exchange

  init(_ channel: BodyChannel, of exchange: Exchange) {
    self.channel = channel
    self.exchange = exchange
  }

  deinit {
    if !channel.hasEnded { exchange.cancel() }
  }

  var timings: Timings { channel.timings }

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
