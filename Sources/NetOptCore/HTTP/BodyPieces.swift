extension [[UInt8]] {
  /// The maximum size of a chunk that is joined from pieces, in bytes.
  private static let longest = 64 * 1024

  /// Appends a piece of a body to this array of chunks. Adds the piece to the last chunk if the chunk then
  /// has at most `longest` bytes. So two neighbouring chunks have more than `longest` bytes together, and
  /// many small pieces do not become many small arrays.
  package mutating func append(piece: [UInt8]) {
    if let last = indices.last, self[last].count + piece.count <= Self.longest {
      self[last] += piece
    } else {
      append(piece)
    }
  }
}
