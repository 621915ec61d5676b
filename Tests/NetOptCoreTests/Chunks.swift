import NetOptLocking

@testable import NetOptCore

/// A body in the given chunks, which then fails or ends.
final class Chunks: BodySource {
  private let chunks: Locked<ArraySlice<[UInt8]>>
  private let failure: NetOptError?
  let timings = Timings()

  init(_ chunks: [[UInt8]], failure: NetOptError? = nil) {
    self.chunks = Locked(chunks[...])
    self.failure = failure
  }

  func next() async throws(NetOptError) -> [UInt8]? {
    if let chunk = chunks.withLock({ $0.popFirst() }) { return chunk }
    if let failure { throw failure }
    return nil
  }

  /// The number of chunks that were not read.
  var left: Int { chunks.withLock(\.count) }
}
