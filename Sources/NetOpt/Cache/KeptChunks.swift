import NetOptCore

/// The chunks of a body on their way to its reader. As long as the body may be stored, they stay when the reader has taken them.
struct KeptChunks {
  /// The chunks that the reader has not taken and, as long as they stay, those that it has.
  private(set) var all: [[UInt8]] = []
  /// The first chunk that the reader has not taken as a whole.
  private var position = 0
  /// How many bytes of that chunk the reader has taken.
  private var offset = 0
  /// Whether chunks stay when the reader has taken them.
  private(set) var areKept = true

  mutating func append(_ chunk: [UInt8]) { all.append(piece: chunk) }

  /// Takes the next chunk, or the rest of it; `nil` when the reader has taken all that has come.
  mutating func take() -> [UInt8]? {
    passRead()
    guard position < all.count, offset < all[position].count else { return nil }
    let chunk = offset == 0 ? all[position] : Array(all[position][offset...])
    offset += chunk.count
    if !areKept { dropRead() }
    return chunk
  }

  /// The body is not stored: drops what the reader has taken, now and from now on.
  mutating func keepNoMore() {
    areKept = false
    dropRead()
  }

  /// Goes on to the next chunk, if there is one. Pieces may still be added to the last chunk.
  private mutating func passRead() {
    while position < all.count - 1, offset == all[position].count { (position, offset) = (position + 1, 0) }
  }

  private mutating func dropRead() {
    if position < all.count, offset == all[position].count { (position, offset) = (position + 1, 0) }
    all.removeSubrange(..<position)
    position = 0
  }
}
