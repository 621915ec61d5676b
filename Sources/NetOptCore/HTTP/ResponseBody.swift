/// Where a body's bytes come from. Implementations cancel their transfer when they are released before the end.
package protocol BodySource: AnyObject, Sendable {
  /// The next chunk, or `nil` at the end. One consumer at a time.
  func next() async throws(NetOptError) -> [UInt8]?
  /// What the phases of the exchange took so far. Safe from any thread.
  var timings: Timings { get }
}

/// A response's body: chunks as they come, once. The transfer is held back when nobody reads.
public struct ResponseBody: AsyncSequence, Sendable {
  /// A piece of the body.
  public typealias Element = [UInt8]
  /// What iterating throws.
  public typealias Failure = NetOptError

  private let source: any BodySource
  /// The source, when all of it is in memory: then nobody need wait for it.
  private let memory: MemoryBody?

  /// Makes a body from a source.
  package init(_ source: any BodySource) {
    self.source = source
    memory = nil
  }

  /// Makes a body from memory.
  public init(_ bytes: [UInt8], timings: Timings = Timings()) {
    let memory = MemoryBody(bytes, timings)
    source = memory
    self.memory = memory
  }

  /// Has somebody told of the end, once, if all of the body is in memory.
  ///
  /// - Returns: whether it is. Otherwise the observer has to stand between the body and who reads it.
  package func isObserved(by observer: any BodyEndObserver) -> Bool {
    guard let memory else { return false }
    memory.observe(observer)
    return true
  }

  /// All of the body, when it is in memory and nobody has begun to read it; else `nil`. It can be read afterwards.
  package var whole: [UInt8]? { memory?.unread }

  /// What the phases of the exchange took so far.
  public var timings: Timings { source.timings }

  /// Reads a body chunk by chunk.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let source: any BodySource

    /// The next chunk, or `nil` at the end.
    ///
    /// - Throws: what ended the transfer early: `receiveFailed`, `timeout`, `cancelled`, `decodeFailed`.
    public mutating func next() async throws(NetOptError) -> [UInt8]? { try await source.next() }

    /// The next chunk, or `nil` at the end.
    public mutating func next(
      isolation actor: isolated (any Actor)?
    ) async throws(NetOptError) -> [UInt8]? { try await source.next() }
  }

  /// Starts reading. A body can be read once; a second iterator goes on where the first one stopped.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(source: source) }

  /// Reads the whole body.
  ///
  /// - Parameter limit: the most bytes that are taken.
  /// - Throws: `NetOptError.Code.bodyTooLarge` when there are more than `limit`, and what ended the transfer early.
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
      // The usual body is one chunk, which is handed on without a copy.
      if whole.isEmpty { whole = chunk } else { whole += chunk }
    }
    return whole
  }
}
