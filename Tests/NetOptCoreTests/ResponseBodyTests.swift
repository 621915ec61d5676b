import NetOptCore
import NetOptLocking
import Testing

@Suite struct ResponseBodyTests {
  /// A body source that returns chunks, and then the end or an error.
  private final class Script: BodySource {
    let timings = Timings()
    /// The chunks that `next()` has not returned.
    private let chunks: Locked<[[UInt8]]>
    /// The error that `next()` throws after the last chunk. `nil` if the body is complete then.
    private let failure: NetOptError?

    init(_ chunks: [[UInt8]], failure: NetOptError? = nil) {
      self.chunks = Locked(chunks)
      self.failure = failure
    }

    /// The number of chunks that `next()` has not returned.
    var left: Int { chunks.withLock { $0.count } }

    func next() async throws(NetOptError) -> [UInt8]? {
      if let chunk = chunks.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { return chunk }
      if let failure { throw failure }
      return nil
    }
  }

  @Test(
    "collect returns all bytes of a body that is not larger than the limit",
    arguments: [
      ([[]], 0), ([[1, 2, 3]], 3), ([[1], [2, 3]], 3), ([[], [1], []], 1), ([[1], [], [2]], .max), ([], 0),
      ([], -1),
    ] as [([[UInt8]], Int)])
  func withinLimit(_ chunks: [[UInt8]], _ limit: Int) async throws {
    #expect(try await ResponseBody(Script(chunks)).collect(upTo: limit) == chunks.flatMap { $0 })
  }

  @Test(
    "collect refuses a body that is larger than the limit",
    arguments: [
      ([[1]], 0), ([[1, 2, 3]], 2), ([[1], [2], [3]], 2), ([[1]], -1), ([[1]], .min),
    ] as [([[UInt8]], Int)])
  func overLimit(_ chunks: [[UInt8]], _ limit: Int) async {
    let error = await #expect(throws: NetOptError.self) {
      try await ResponseBody(Script(chunks)).collect(upTo: limit)
    }
    #expect(error?.code == .bodyTooLarge)
    #expect(error?.phase == .receive)
    #expect(error?.message.contains("larger than \(limit) bytes") == true)
  }

  @Test("collect stops reading at the first chunk over the limit")
  func readingStop() async {
    let source = Script([[1], [2], [3], [4]])
    await #expect(throws: NetOptError.self) { try await ResponseBody(source).collect(upTo: 1) }
    #expect(source.left == 2)
  }

  @Test("collect returns a single chunk without a copy")
  func singleChunk() async throws {
    let chunk = [UInt8](repeating: 7, count: 100_000)
    // Returns the address of the array's memory. A copy of the array would have another address.
    let address = { (bytes: [UInt8]) in bytes.withUnsafeBufferPointer { UInt(bitPattern: $0.baseAddress) } }
    #expect(address(try await ResponseBody(Script([chunk])).collect(upTo: .max)) == address(chunk))
    #expect(address(try await ResponseBody(chunk).collect(upTo: .max)) == address(chunk))
  }

  @Test("collect throws the error of the source")
  func sourceFailure() async {
    let failure = NetOptError(.receiveFailed, phase: .receive, "cut off")
    let body = ResponseBody(Script([[1]], failure: failure))
    let error = await #expect(throws: NetOptError.self) { try await body.collect(upTo: 10) }
    #expect(error?.code == .receiveFailed)
  }

  @Test("two iterators of a body share its chunks")
  func sharedChunks() async throws {
    let body = ResponseBody(Script([[1], [2], [3]]))
    var first = body.makeAsyncIterator()
    #expect(try await first.next() == [1])
    var second = body.makeAsyncIterator()
    #expect(try await second.next() == [2])
    #expect(try await first.next(isolation: nil) == [3])
    #expect(try await second.next() == nil)
  }

  @Test("a body from memory is one chunk with the given timings, and is empty once read")
  func memoryBody() async throws {
    var timings = Timings()
    timings.wait = .seconds(1)
    let body = ResponseBody([1, 2], timings: timings)
    #expect(body.timings == timings)
    var chunks: [[UInt8]] = []
    for try await chunk in body { chunks.append(chunk) }
    #expect(chunks == [[1, 2]])
    #expect(try await body.collect(upTo: 10).isEmpty)
  }

  @Test("a body from empty memory has no chunk")
  func emptyBody() async throws {
    var iterator = ResponseBody([]).makeAsyncIterator()
    #expect(try await iterator.next() == nil)
  }
}
