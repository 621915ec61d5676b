/// The chunks of bodies that were handed out last, to be filled again when nobody else has them any more.
///
/// A reader lets go of a chunk soon after it got it. The allocator would give the memory back to the system, and the next
/// chunk would bring a page fault for each of its pages: of a download, a third of all work. Confined to the loop.
final class SpareChunks {
  /// As many as a reader may be behind with the usual buffer (512 KiB): half a megabyte for a client that receives.
  private static let most = 8

  // Unchecked exclusivity: see CurlMulti.
  @exclusivity(unchecked) private var chunks: [[UInt8]] = []
  @exclusivity(unchecked) private var next = 0

  /// An empty chunk.
  ///
  /// - Parameter capacity: how many bytes it has room for.
  func take(_ capacity: Int) -> [UInt8] {
    var chunk: [UInt8] = []
    if chunks.count == Self.most {
      swap(&chunk, &chunks[next])
      // Of a chunk that somebody still has this makes a new one.
      chunk.removeAll(keepingCapacity: true)
    }
    chunk.reserveCapacity(capacity)
    return chunk
  }

  /// A chunk is handed out.
  func handOut(_ chunk: [UInt8]) {
    if chunks.count < Self.most { return chunks.append(chunk) }
    chunks[next] = chunk
    next = (next + 1) % Self.most
  }

  /// Keeps none of them.
  func removeAll() {
    if chunks.isEmpty { return }
    chunks = []
    next = 0
  }
}
