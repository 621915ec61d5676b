/// The body chunks that were last passed to readers. When a reader has dropped its chunk, the chunk's memory
/// is used again for a new chunk.
///
/// A reader usually drops a chunk soon. Without `SpareChunks`, the allocator would then return the memory to
/// the system, and each page of the next chunk would cause a page fault. The page faults take a third of all
/// work for a download. Confined to the loop.
final class SpareChunks {
  /// The maximum number of chunks. This many chunks of 64 KiB fill the default buffer for a body
  /// (`CurlConfiguration.bodyBuffer`, 512 KiB). They take half a megabyte in each client while it receives
  /// bodies.
  private static let most = 8

  // Unchecked exclusivity: see CurlMulti.
  /// The chunks, up to `most`; `next` is the index of the oldest one.
  @exclusivity(unchecked) private var chunks: [[UInt8]] = []
  @exclusivity(unchecked) private var next = 0

  /// Returns an empty chunk, if possible in the memory of the oldest chunk.
  ///
  /// - Parameter capacity: the number of bytes for which the chunk has room at least.
  func take(_ capacity: Int) -> [UInt8] {
    var chunk: [UInt8] = []
    if chunks.count == Self.most {
      swap(&chunk, &chunks[next])
      // If a reader still uses the chunk, this allocates new memory.
      chunk.removeAll(keepingCapacity: true)
    }
    chunk.reserveCapacity(capacity)
    return chunk
  }

  /// Remembers a chunk that is passed to a reader. If `most` chunks are remembered already, the chunk takes
  /// the place of the oldest one.
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
