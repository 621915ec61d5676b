import NetOptCore

/// The chunks of a body on their way to its reader. While the body may be stored, the chunks remain here
/// after the reader has taken them.
struct KeptChunks {
  /// The chunks that the reader has not taken; while `areKept` is true, also the chunks that it has taken.
  private(set) var all: [[UInt8]] = []
  /// The index of the first chunk that the reader has not taken completely.
  private var position = 0
  /// The number of bytes of this chunk that the reader has taken.
  private var offset = 0
  /// Whether chunks remain after the reader has taken them.
  private(set) var areKept = true

  mutating func append(_ chunk: [UInt8]) { all.append(piece: chunk) }

  /// Takes the next chunk, or the rest of it; `nil` when the reader has taken all chunks so far.
  mutating func take() -> [UInt8]? {
    skipRead()
    guard position < all.count, offset < all[position].count else { return nil }
    let chunk = offset == 0 ? all[position] : Array(all[position][offset...])
    offset += chunk.count
    if !areKept { dropRead() }
    return chunk
  }

  /// Drops the chunks that the reader has taken, now and later, because the body will not be stored.
  mutating func stopKeeping() {
    areKept = false
    dropRead()
  }

  /// Advances to the next chunk, if there is one. The last chunk may still grow.
  private mutating func skipRead() {
    while position < all.count - 1, offset == all[position].count { (position, offset) = (position + 1, 0) }
  }

  private mutating func dropRead() {
    if position < all.count, offset == all[position].count { (position, offset) = (position + 1, 0) }
    all.removeSubrange(..<position)
    position = 0
  }
}
