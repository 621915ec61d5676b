/// The source of a body's bytes. When a source is released before the end of the body, it ends the transfer.
package protocol BodySource: AnyObject, Sendable {
  /// Waits for the next chunk and returns it; `nil` at the end. Only one task at a time may call this.
  func next() async throws(NetOptError) -> [UInt8]?
  /// The durations of the phases of the exchange so far. Safe from any thread.
  var timings: Timings { get }
  /// The program releases the body before it has read the end. Tells an observer how the body ends then.
  /// Called at most once, right before the release. The source may still receive the rest of the body, so
  /// that its connection can be used again.
  func tellEnd(to observer: any BodyEndObserver)
}

extension BodySource {
  /// Tells the observer that the body did not end.
  package func tellEnd(to observer: any BodyEndObserver) { observer.bodyWasReleased() }
}

/// The body of a response: a sequence of chunks that can be read once. While the program does not read, the
/// transfer pauses.
public struct ResponseBody: AsyncSequence, Sendable {
  /// A chunk of the body.
  public typealias Element = [UInt8]
  /// The error that iteration throws.
  public typealias Failure = NetOptError

  private let source: any BodySource
  /// The same object as `source`, if the whole body is in memory; otherwise `nil`.
  private let memory: MemoryBody?

  /// Creates a body from a source.
  package init(_ source: any BodySource) {
    self.source = source
    memory = nil
  }

  /// Creates a body from bytes in memory.
  public init(_ bytes: [UInt8], timings: Timings = Timings()) {
    let memory = MemoryBody(bytes, timings)
    source = memory
    self.memory = memory
  }

  /// Sets the observer of the body's end, if the whole body is in memory and has no observer. An observer of
  /// an empty body is told of the end at once.
  ///
  /// - Returns: whether the observer was set. If false, the caller must replace the body by one that tells
  ///   the observer of the end.
  package func attachObserver(_ observer: any BodyEndObserver) -> Bool {
    memory?.observe(observer) ?? false
  }

  /// The program is about to release the body. Tells an observer how the body ends then.
  package func tellEnd(to observer: any BodyEndObserver) { source.tellEnd(to: observer) }

  /// The whole body, if it is in memory and reading has not begun; otherwise `nil`. Does not read the body:
  /// the bytes can still be read afterwards.
  package var whole: [UInt8]? { memory?.unread }

  /// The durations of the phases of the exchange so far.
  public var timings: Timings { source.timings }

  /// Reads a body chunk by chunk.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let source: any BodySource

    /// Returns the next chunk, or `nil` at the end.
    ///
    /// - Throws: the error that ended the transfer early: `receiveFailed`, `timeout`, `cancelled` or
    ///   `decodeFailed`.
    public mutating func next() async throws(NetOptError) -> [UInt8]? { try await source.next() }

    /// Returns the next chunk, or `nil` at the end.
    public mutating func next(
      isolation actor: isolated (any Actor)?
    ) async throws(NetOptError) -> [UInt8]? { try await source.next() }
  }

  /// Returns an iterator over the chunks. A body can be read only once: a second iterator continues where the
  /// first iterator stopped.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(source: source) }

  /// Reads the whole body.
  ///
  /// - Parameter limit: the maximum number of bytes.
  /// - Throws: `NetOptError.Code.bodyTooLarge` if the body is larger than `limit`, and the error that ended
  ///   the transfer early.
  public func collect(upTo limit: Int) async throws(NetOptError) -> [UInt8] {
    let tooLarge = { () -> NetOptError in
      NetOptError(
        .bodyTooLarge, phase: .receive,
        "the body is larger than \(limit) bytes; raise the limit, or read it chunk by chunk")
    }
    if let memory {
      let whole = memory.take(all: true)
      if whole.count > limit { throw tooLarge() }
      return whole
    }
    var whole: [UInt8] = []
    while let chunk = try await source.next() {
      if chunk.count > limit - whole.count { throw tooLarge() }
      // Most bodies have one chunk, which is returned without a copy.
      if whole.isEmpty { whole = chunk } else { whole += chunk }
    }
    return whole
  }
}
