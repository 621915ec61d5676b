import Dispatch
import Foundation

/// The bytes of an input stream, in chunks. Reading may block, so it happens on a queue of its own.
struct InputStreamChunks: AsyncSequence, Sendable {
  typealias Element = [UInt8]

  /// The maximum size of a chunk in bytes.
  private static let chunkSize = 64 * 1024

  private let reader: Reader

  init(_ stream: InputStream) { reader = Reader(stream) }

  func makeAsyncIterator() -> Iterator { Iterator(reader: reader) }

  struct Iterator: AsyncIteratorProtocol {
    fileprivate let reader: Reader

    mutating func next() async throws -> [UInt8]? {
      let reader = reader
      return try await withCheckedThrowingContinuation { next in
        reader.queue.async { next.resume(with: Result { try reader.read() }) }
      }
    }
  }

  fileprivate final class Reader: @unchecked Sendable {
    // Unchecked: only work on the serial queue uses the stream.
    let queue = DispatchQueue(label: "netopt.upload")
    private let stream: InputStream

    init(_ stream: InputStream) { self.stream = stream }

    deinit { if stream.streamStatus != .notOpen { stream.close() } }

    func read() throws -> [UInt8]? {
      if stream.streamStatus == .notOpen { stream.open() }
      var count = 0
      let chunk = [UInt8](unsafeUninitializedCapacity: chunkSize) { buffer, used in
        // The buffer has a base address, because its capacity is not 0.
        if let start = buffer.baseAddress { count = stream.read(start, maxLength: buffer.count) }
        used = Swift.max(0, count)
      }
      if count < 0 { throw stream.streamError ?? CocoaError(.fileReadUnknown) }
      return count == 0 ? nil : chunk
    }
  }
}
