/// The body chunks that were handed out last. A chunk is filled again when nothing else uses it.
///
/// A reader usually drops a chunk soon after it got the chunk. The allocator would then return the memory to
/// the system, and each page of the next chunk would cause a page fault. This takes a third of all work for a
/// download. Confined to the loop.
final class SpareChunks {
  /// The number of chunks that a reader may be behind with the default buffer (512 KiB). They take half a
  /// megabyte per client that receives.
  private static let most = 8

  // Unchecked exclusivity: see CurlMulti.
  @exclusivity(unchecked) private var chunks: [[UInt8]] = []
  @exclusivity(unchecked) private var next = 0

  /// Returns an empty chunk.
  ///
  /// - Parameter capacity: the number of bytes for which the chunk has room.
  func take(_ capacity: Int) -> [UInt8] {
    var chunk: [UInt8] = []
    if chunks.count == Self.most {
      swap(&chunk, &chunks[next])
      // If somebody still uses the chunk, this makes a new one.
      chunk.removeAll(keepingCapacity: true)
    }
    chunk.reserveCapacity(capacity)
    return chunk
  }

  /// Remembers a chunk that is handed out.
  func handOut(_ chunk: [UInt8]) {
    if chunks.count < Self.most { return chunks.append(chunk) }
    chunks[next] = chunk
    next = (next + 1) % Self.most
  }

  /// Drops all chunks.
  func removeAll() {
    if chunks.isEmpty { return }
    chunks = []
    next = 0
  }
}
