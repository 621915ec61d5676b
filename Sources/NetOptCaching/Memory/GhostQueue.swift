/// A first-in first-out queue of fingerprints and sizes of items that left a cache. The sizes add up to the
/// capacity at most.
struct GhostQueue: Sendable {
  private struct Ghost: Sendable {
    let fingerprint: UInt64
    /// The size in bytes, or -1 when the ghost was removed from the middle of the queue.
    var size: Int
  }

  /// The maximum number of bytes that one ghost takes, right after the tables have grown.
  static let mostBytesOfEach = 96
  /// The size up to which tables are never shrunk.
  private static let least = 64

  private let capacity: Int
  private let maxCount: Int
  private var bytes = 0
  /// The ghosts, oldest first. Elements before the index `first` are removed.
  private var ghosts: [Ghost] = []
  private var first = 0
  /// The position of each ghost, as an index into `ghosts` plus `dropped`, the number of positions dropped so
  /// far.
  private var positions: [UInt64: Int] = [:]
  private var dropped = 0

  init(capacity: Int, maxCount: Int) {
    self.capacity = capacity
    self.maxCount = maxCount
  }

  /// The number of ghosts.
  var count: Int { positions.count }

  /// The bytes that the tables take.
  var tableBytes: Int { TableSize.bytes(of: ghosts) + TableSize.bytes(of: positions) }

  /// Adds a fingerprint, and removes the oldest ones until there is room. A fingerprint that is in the queue
  /// keeps its position.
  mutating func insert(_ fingerprint: UInt64, size: Int) {
    guard size <= capacity, positions[fingerprint] == nil else { return }
    while bytes > capacity - size || positions.count >= maxCount { removeOldest() }
    positions[fingerprint] = dropped + ghosts.count
    ghosts.append(Ghost(fingerprint: fingerprint, size: size))
    bytes += size
  }

  /// Removes a fingerprint.
  ///
  /// - Returns: whether the queue contained the fingerprint.
  mutating func remove(_ fingerprint: UInt64) -> Bool {
    guard let position = positions.removeValue(forKey: fingerprint) else { return false }
    bytes -= ghosts[position - dropped].size
    ghosts[position - dropped].size = -1
    compact()
    return true
  }

  /// Removes the oldest fingerprint.
  mutating func removeOldest() {
    while first < ghosts.count, ghosts[first].size < 0 { first += 1 }
    guard first < ghosts.count else { return }
    positions[ghosts[first].fingerprint] = nil
    bytes -= ghosts[first].size
    first += 1
    compact()
  }

  /// Drops removed elements once they outnumber the remaining ones, and shrinks tables with room for many
  /// more. As many removals came before in either case, so the cost per removal is constant.
  private mutating func compact() {
    let count = positions.count
    guard count > 0 else {
      dropped += ghosts.count
      (ghosts, positions, first) = ([], [:], 0)
      return
    }
    let isSparse = TableSize.isSparse(positions, least: Self.least)
    guard isSparse || ghosts.count > 2 * count + Self.least else { return }
    if isSparse { positions = Dictionary(minimumCapacity: 2 * count) }
    dropped += ghosts.count
    var rest: [Ghost] = []
    // The number of elements that makes the next compaction due.
    rest.reserveCapacity(2 * count + Self.least + 1)
    for ghost in ghosts[first...] where ghost.size >= 0 {
      positions[ghost.fingerprint] = dropped + rest.count
      rest.append(ghost)
    }
    ghosts = rest
    first = 0
  }
}
