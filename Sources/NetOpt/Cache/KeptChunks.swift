import NetOptCore

/// A body's chunks on their way to its reader, kept as well as long as the body may be stored.
struct KeptChunks {
  /// What is there and, while it is kept, was there.
  private(set) var all: [[UInt8]] = []
  /// The first one of which the reader has not had all.
  private var position = 0
  /// How much of that one it has had.
  private var offset = 0
  /// Whether what the reader has had is kept.
  private(set) var areKept = true

  mutating func append(_ chunk: [UInt8]) { all.append(piece: chunk) }

  /// What the reader has not had of the next chunk; `nil` when it has had all that is there.
  mutating func take() -> [UInt8]? {
    passRead()
    guard position < all.count, offset < all[position].count else { return nil }
    let chunk = offset == 0 ? all[position] : Array(all[position][offset...])
    offset += chunk.count
    if !areKept { dropRead() }
    return chunk
  }

  /// From here on only what the reader has not had is there, for it.
  mutating func keepNoMore() {
    areKept = false
    dropRead()
  }

  /// Goes on to the next chunk, when there is one: until then pieces may be added to the last one.
  private mutating func passRead() {
    while position < all.count - 1, offset == all[position].count { (position, offset) = (position + 1, 0) }
  }

  private mutating func dropRead() {
    if position < all.count, offset == all[position].count { (position, offset) = (position + 1, 0) }
    all.removeSubrange(..<position)
    position = 0
  }
}
