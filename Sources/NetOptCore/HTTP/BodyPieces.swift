extension [[UInt8]] {
  /// The largest chunk that is made of pieces, in bytes.
  private static let longest = 64 * 1024

  /// Adds a piece of a body to its chunks. Pieces that fit into one chunk become one: of two neighbours one is then at
  /// least half full, so that the chunks take about what they hold, however a server cuts its body.
  package mutating func append(piece: [UInt8]) {
    if let last = indices.last, self[last].count + piece.count <= Self.longest {
      self[last] += piece
    } else {
      append(piece)
    }
  }
}
