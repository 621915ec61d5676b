import NetOptCore
import NetOptLocking
import Testing

@Suite struct ResponseBodyTests {
  /// Gives chunks, then an end or a failure.
  private final class Script: BodySource {
    let timings = Timings()
    private let chunks: Locked<[[UInt8]]>
    private let failure: NetOptError?

    init(_ chunks: [[UInt8]], failure: NetOptError? = nil) {
      self.chunks = Locked(chunks)
      self.failure = failure
    }

    var left: Int { chunks.withLock { $0.count } }

    func next() async throws(NetOptError) -> [UInt8]? {
      if let chunk = chunks.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { return chunk }
      if let failure { throw failure }
      return nil
    }
  }

  @Test(
    arguments: [
      ([[]], 0), ([[1, 2, 3]], 3), ([[1], [2, 3]], 3), ([[], [1], []], 1), ([[1], [], [2]], .max), ([], 0),
      ([], -1),
    ] as [([[UInt8]], Int)])
  func collectsUpToTheLimit(_ chunks: [[UInt8]], _ limit: Int) async throws {
    #expect(try await ResponseBody(Script(chunks)).collect(upTo: limit) == chunks.flatMap { $0 })
  }

  @Test(
    arguments: [
      ([[1]], 0), ([[1, 2, 3]], 2), ([[1], [2], [3]], 2), ([[1]], -1), ([[1]], .min),
    ] as [([[UInt8]], Int)])
  func refusesMore(_ chunks: [[UInt8]], _ limit: Int) async {
    let error = await #expect(throws: NetOptError.self) {
      try await ResponseBody(Script(chunks)).collect(upTo: limit)
    }
    #expect(error?.code == .bodyTooLarge)
    #expect(error?.phase == .receive)
    #expect(error?.message.contains("larger than \(limit) bytes") == true)
  }

  @Test func stopsReadingAtTheLimit() async {
    let source = Script([[1], [2], [3], [4]])
    await #expect(throws: NetOptError.self) { try await ResponseBody(source).collect(upTo: 1) }
    #expect(source.left == 2)
  }

  @Test func handsOnASingleChunkWithoutACopy() async throws {
    let chunk = [UInt8](repeating: 7, count: 100_000)
    let address = { (bytes: [UInt8]) in bytes.withUnsafeBufferPointer { UInt(bitPattern: $0.baseAddress) } }
    #expect(address(try await ResponseBody(Script([chunk])).collect(upTo: .max)) == address(chunk))
    #expect(address(try await ResponseBody(chunk).collect(upTo: .max)) == address(chunk))
  }

  @Test func passesFailuresOn() async {
    let failure = NetOptError(.receiveFailed, phase: .receive, "cut off")
    let body = ResponseBody(Script([[1]], failure: failure))
    let error = await #expect(throws: NetOptError.self) { try await body.collect(upTo: 10) }
    #expect(error?.code == .receiveFailed)
  }

  @Test func isReadOnceByWhoeverAsks() async throws {
    let body = ResponseBody(Script([[1], [2], [3]]))
    var first = body.makeAsyncIterator()
    #expect(try await first.next() == [1])
    var second = body.makeAsyncIterator()
    #expect(try await second.next() == [2])
    #expect(try await first.next(isolation: nil) == [3])
    #expect(try await second.next() == nil)
  }

  @Test func fromMemoryIsOneChunk() async throws {
    var timings = Timings()
    timings.wait = .seconds(1)
    let body = ResponseBody([1, 2], timings: timings)
    #expect(body.timings == timings)
    var chunks: [[UInt8]] = []
    for try await chunk in body { chunks.append(chunk) }
    #expect(chunks == [[1, 2]])
    #expect(try await body.collect(upTo: 10).isEmpty)
  }

  @Test func emptyMemoryHasNoChunk() async throws {
    var iterator = ResponseBody([]).makeAsyncIterator()
    #expect(try await iterator.next() == nil)
  }
}
