/// The ghost queue of `S3FIFO`: the fingerprints and sizes of items that left the cache, first in, first out.
/// The sum of the sizes is at most the capacity.
struct GhostQueue: Sendable {
  /// The trace of an item that left the cache.
  private struct Ghost: Sendable {
    /// The hash that identifies the item.
    let fingerprint: UInt64
    /// The size of the item in bytes; -1 after the ghost was removed from the middle of the queue.
    var size: Int
  }

  /// The most memory that one ghost takes in the tables, in bytes. This is the case when the tables have just
  /// grown.
  static let mostBytesOfEach = 96
  /// Tables with at most this capacity, in elements, are not shrunk.
  private static let least = 64

  /// The maximum sum of the sizes, in bytes.
  private let capacity: Int
  /// The maximum number of ghosts.
  private let maxCount: Int
  /// The sum of the sizes, in bytes.
  private var bytes = 0
  /// The ghosts, oldest first. The elements before the index `first` were removed, and so were those with the
  /// size -1.
  private var ghosts: [Ghost] = []
  /// The index of the first element of `ghosts` that was not removed from the front.
  private var first = 0
  /// The position of each ghost by its fingerprint. A position is an index into `ghosts` plus `droppedCount`.
  private var positions: [UInt64: Int] = [:]
  /// The total number of elements of all earlier arrays in `ghosts`. `compact` adds the number of elements of
  /// the old array when it makes a new one. So the positions in the new array continue after those in the old
  /// array.
  private var droppedCount = 0

  init(capacity: Int, maxCount: Int) {
    self.capacity = capacity
    self.maxCount = maxCount
  }

  /// The number of ghosts.
  var count: Int { positions.count }

  /// The memory that the tables take, in bytes, full or not.
  var tableBytes: Int { TableSize.bytes(of: ghosts) + TableSize.bytes(of: positions) }

  /// Adds the fingerprint of an item of `size` bytes, and removes the oldest fingerprints until there is
  /// room. A fingerprint that is already in the queue keeps its position.
  mutating func insert(_ fingerprint: UInt64, size: Int) {
    guard size <= capacity, positions[fingerprint] == nil else { return }
    while bytes > capacity - size || positions.count >= maxCount { removeOldest() }
    positions[fingerprint] = droppedCount + ghosts.count
    ghosts.append(Ghost(fingerprint: fingerprint, size: size))
    bytes += size
  }

  /// Removes a fingerprint.
  ///
  /// - Returns: whether the queue contained the fingerprint.
  mutating func remove(_ fingerprint: UInt64) -> Bool {
    guard let position = positions.removeValue(forKey: fingerprint) else { return false }
    bytes -= ghosts[position - droppedCount].size
    ghosts[position - droppedCount].size = -1
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

  /// Rebuilds the tables if removed elements outnumber the ghosts, or if the tables are sparse. Many elements
  /// are removed between two rebuilds, so the average cost of a removal is constant.
  private mutating func compact() {
    let count = positions.count
    guard count > 0 else {
      droppedCount += ghosts.count
      (ghosts, positions, first) = ([], [:], 0)
      return
    }
    let isSparse = TableSize.isSparse(positions, least: Self.least)
    guard isSparse || ghosts.count > 2 * count + Self.least else { return }
    if isSparse { positions = Dictionary(minimumCapacity: 2 * count) }
    droppedCount += ghosts.count
    var rest: [Ghost] = []
    // If the number of ghosts does not grow, the next rebuild is due before the array needs more than this
    // capacity.
    rest.reserveCapacity(2 * count + Self.least + 1)
    for ghost in ghosts[first...] where ghost.size >= 0 {
      positions[ghost.fingerprint] = droppedCount + rest.count
      rest.append(ghost)
    }
    ghosts = rest
    first = 0
  }
}
