extension [[UInt8]] {
  /// The maximum size of a chunk that is joined from pieces, in bytes.
  private static let longest = 64 * 1024

  /// Appends a piece of a body. Joins the piece to the last chunk if both fit into one chunk. So of two
  /// neighbouring chunks at least one is half full, and the memory overhead is small for any sizes of pieces.
  package mutating func append(piece: [UInt8]) {
    if let last = indices.last, self[last].count + piece.count <= Self.longest {
      self[last] += piece
    } else {
      append(piece)
    }
  }
}
