import NetOptCore
import NetOptEngine
import NetOptLocking

/// Reads lines on a separate thread. So waiting for input does not block the threads that perform requests.
final class LineSource: Sendable {
  private let reader: Locked<LineReader>
  /// The thread that reads the lines. It does nothing else, so it may block.
  private let thread: EventLoop
  /// Runs `read` on `thread`.
  private let executor: LoopTaskExecutor

  /// Creates a source.
  ///
  /// - Parameter limit: the maximum length of a line in bytes.
  /// - Throws: `libraryFailed` when the system cannot create the thread.
  init(_ input: any ByteInput, limit: Int) throws(NetOptError) {
    reader = Locked(LineReader(input, limit: limit, phase: .send))
    thread = try EventLoop()
    executor = LoopTaskExecutor(thread)
  }

  deinit { thread.stop() }

  /// Returns the next line that is not empty, without its line end; `nil` at the end of the input. Only one
  /// task at a time may call this.
  func next() async throws -> [UInt8]? {
    try await withTaskExecutorPreference(executor) { try await read() }
  }

  @concurrent
  private func read() async throws -> [UInt8]? { try reader.withLock { try $0.next() } }
}
