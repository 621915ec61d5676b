import NetOptCore
import NetOptEngine
import NetOptLocking

/// Reads lines on a thread of its own, so that waiting for input takes none from the requests.
final class LineSource: Sendable {
  private let reader: Locked<LineReader>
  private let thread: EventLoop
  private let executor: LoopTaskExecutor

  /// Makes a source.
  ///
  /// - Parameter limit: the most bytes of a line.
  /// - Throws: `libraryFailed` when the system gives no thread.
  init(_ input: any ByteInput, limit: Int) throws(NetOptError) {
    reader = Locked(LineReader(input, limit: limit, phase: .send))
    thread = try EventLoop()
    executor = LoopTaskExecutor(thread)
  }

  deinit { thread.stop() }

  /// The next line that is not empty; `nil` at the end. One caller at a time.
  func next() async throws -> [UInt8]? {
    try await withTaskExecutorPreference(executor) { try await read() }
  }

  @concurrent
  private func read() async throws -> [UInt8]? { try reader.withLock { try $0.next() } }
}
