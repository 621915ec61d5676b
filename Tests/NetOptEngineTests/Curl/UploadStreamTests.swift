import Glibc
import NetOptCore
import NetOptTestSupport
import Testing

@testable import NetOptEngine

/// Streamed request bodies that libcurl takes, and takes again from the beginning (`rewind`).
@Suite struct UploadStreamTests {
  /// Returns an upload stream with all chunks of a body, so that libcurl never waits for one.
  private func upload(of chunks: [[UInt8]]) async -> UploadStream {
    let stream = AsyncStream<[UInt8]> { continuation in
      for chunk in chunks { continuation.yield(chunk) }
      continuation.finish()
    }
    guard case .stream(let length, _, let iterator) = RequestBody.stream(stream).source else {
      preconditionFailure("a stream is a stream")
    }
    let upload = UploadStream(length: length, isRepeatable: false, iterator)
    await upload.pump {}
    return upload
  }

  /// Takes up to `count` bytes as libcurl does. Returns `nil` at the end of the body.
  private func take(_ count: Int, of upload: UploadStream) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: count)
    let step = bytes.withUnsafeMutableBytes { upload.take($0) }
    guard case .bytes(let taken) = step, taken > 0 else { return nil }
    return Array(bytes[..<taken])
  }

  /// Bytes whose neighbours differ.
  private static let pattern = (0..<61_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 / 251) }

  /// Whether an array has the first bytes of another one. Unlike `==`, it takes nanoseconds for each byte in
  /// a build without optimization.
  ///
  /// - Parameter count: the number of bytes; `nil` for all.
  private static func isSame(_ bytes: [UInt8], _ whole: [UInt8], _ count: Int? = nil) -> Bool {
    bytes.count == count ?? whole.count && bytes.count <= whole.count
      && memcmp(bytes, whole, bytes.count) == 0
  }

  /// Takes all bytes up to the end of the body.
  private func rest(of upload: UploadStream) -> [UInt8] {
    var rest: [UInt8] = []
    while let bytes = take(5000, of: upload) { rest += bytes }
    return rest
  }

  @Test(
    "a body begins again completely if at most 128 KiB were taken, and otherwise does not begin again",
    arguments: 1...200 as ClosedRange<UInt64>)
  func rewinds(seed: UInt64) async {
    var random = SplitMix64(seed: seed)
    var chunks: [[UInt8]] = []
    var total = 0
    // The body has less than `highWater` bytes. With more, `pump` would wait until bytes are taken, and the
    // test takes bytes only after `pump` has returned.
    while total < UploadStream.highWater - 70_000, random.below(40) > 0 {
      let count = Int(random.below(random.below(4) == 0 ? 60_000 : 3000))
      let start = Int(random.below(251))
      chunks.append(Array(Self.pattern[start..<start + count]))
      total += count
    }
    let body = chunks.reduce(into: [UInt8]()) { $0 += $1 }
    let upload = await upload(of: chunks)
    for _ in 0..<6 {
      var taken: [UInt8] = []
      for _ in 0..<random.below(30) {
        guard let bytes = take(1 + Int(random.below(20_000)), of: upload) else { break }
        taken += bytes
      }
      #expect(Self.isSame(taken, body, taken.count))
      #expect(upload.canRewind == (taken.count <= UploadStream.mostKept))
      guard upload.rewind() else {
        #expect(taken.count > UploadStream.mostKept)
        #expect(Self.isSame(taken + rest(of: upload), body))
        return
      }
    }
    #expect(Self.isSame(rest(of: upload), body))
  }

  /// Gives the chunks of a body, and lets other tasks run between them.
  private struct SlowChunks: AsyncSequence, AsyncIteratorProtocol {
    var chunks: ArraySlice<[UInt8]>
    func makeAsyncIterator() -> SlowChunks { self }
    mutating func next() async -> [UInt8]? {
      await Task.yield()
      return chunks.popFirst()
    }
  }

  @Test(
    "a repeatable body begins again however much was taken, and each pass has the same bytes",
    .timeLimit(.minutes(1)), arguments: 1...100 as ClosedRange<UInt64>)
  func restarts(seed: UInt64) async throws {
    var random = SplitMix64(seed: seed)
    let chunks = (0..<Int(random.below(60))).map { index in
      [UInt8](repeating: UInt8(truncatingIfNeeded: index), count: 1 + Int(random.below(40_000)))
    }
    let body = chunks.reduce(into: [UInt8]()) { $0 += $1 }
    let announced: Int64? = random.below(2) == 0 ? Int64(body.count) : nil
    let upload = UploadStream(length: announced, isRepeatable: true) { _ in
      SlowChunksIterator(base: SlowChunks(chunks: chunks[...]))
    }
    // The loop: it takes bytes when there are some, and begins again at random places.
    let (wakes, waker) = AsyncStream<Void>.makeStream()
    let pump = Task { await upload.pump { waker.yield() } }
    var wake = wakes.makeAsyncIterator()
    var taken: [UInt8] = []
    var restarts = Int(random.below(5))
    // Where the next restart comes. Each place at or before the end is possible.
    var next = Int(random.below(UInt64(body.count + 1)))
    var buffer = [UInt8](repeating: 0, count: 70_000)
    taking: while true {
      if restarts > 0, taken.count >= next {
        #expect(Self.isSame(taken, body, taken.count))
        #expect(upload.canRewind && upload.rewind())
        (taken, restarts, next) = ([], restarts - 1, Int(random.below(UInt64(body.count + 1))))
      }
      let size = 1 + Int(random.below(70_000))
      switch buffer.withUnsafeMutableBytes({ upload.take(.init(rebasing: $0[..<size])) }) {
      case .bytes(0) where restarts == 0: break taking
      // The end may come before the place of the restart only if the body is shorter.
      case .bytes(let count): taken += buffer[..<count]
      case .notYet: _ = await wake.next()
      case .failed: Issue.record("the body failed: \(String(describing: upload.failure))"); break taking
      }
    }
    #expect(Self.isSame(taken, body))
    pump.cancel()
    await pump.value
  }

  private struct SlowChunksIterator: AsyncIteratorProtocol {
    var base: SlowChunks
    mutating func next() async throws -> [UInt8]? { await base.next() }
    mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> [UInt8]? {
      await base.next()
    }
  }
}
