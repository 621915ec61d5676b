import NetOptCore

/// The chunks of a response body between the transport and the reader. As long as the cache may store the
/// body, the chunks stay here after the reader has taken them.
struct KeptChunks {
  /// The chunks in order. While `areKept` is true, these are all chunks so far. Otherwise they are the chunks
  /// that the reader has not taken.
  private(set) var all: [[UInt8]] = []
  /// The index in `all` of the first chunk that the reader has not taken completely.
  private var position = 0
  /// The number of bytes of the chunk at `position` that the reader has taken.
  private var offset = 0
  /// Whether chunks stay in `all` after the reader has taken them.
  private(set) var areKept = true

  /// Adds bytes at the end, possibly to the last chunk.
  mutating func append(_ chunk: [UInt8]) { all.append(piece: chunk) }

  /// Takes the rest of the current chunk, or the next chunk; `nil` when the reader has taken all bytes so
  /// far.
  mutating func take() -> [UInt8]? {
    skipRead()
    guard position < all.count, offset < all[position].count else { return nil }
    let chunk = offset == 0 ? all[position] : Array(all[position][offset...])
    offset += chunk.count
    if !areKept { dropRead() }
    return chunk
  }

  /// Stops keeping chunks, because the body will not be stored or has been stored. Drops the chunks that the
  /// reader has taken.
  mutating func stopKeeping() {
    areKept = false
    dropRead()
  }

  /// Moves `position` past the chunks that the reader has taken. Stays at the last chunk, which may still
  /// grow.
  private mutating func skipRead() {
    while position < all.count - 1, offset == all[position].count { (position, offset) = (position + 1, 0) }
  }

  /// Drops the chunks that the reader has taken completely.
  private mutating func dropRead() {
    if position < all.count, offset == all[position].count { (position, offset) = (position + 1, 0) }
    all.removeSubrange(..<position)
    position = 0
  }
}
