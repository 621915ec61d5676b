/// What left a cache a while ago, by fingerprint and size, first in, first out: as much as would fill the capacity.
struct GhostQueue: Sendable {
  private struct Ghost: Sendable {
    let fingerprint: UInt64
    /// At least 0; less when it was taken out of the middle.
    var size: Int
  }

  /// What remembering one takes at most, when the tables have just grown.
  static let mostBytesOfEach = 96
  /// Tables that are no larger than this are left as they are.
  private static let least = 64

  private let capacity: Int
  private let maxCount: Int
  private var bytes = 0
  /// Oldest first, from `first` on; what is before it is gone.
  private var ghosts: [Ghost] = []
  private var first = 0
  /// Where each one is, counted from the beginning of time.
  private var places: [UInt64: Int] = [:]
  private var dropped = 0

  init(capacity: Int, maxCount: Int) {
    self.capacity = capacity
    self.maxCount = maxCount
  }

  /// How many there are.
  var count: Int { places.count }

  /// What the tables take.
  var tableBytes: Int { TableSize.bytes(of: ghosts) + TableSize.bytes(of: places) }

  /// Remembers one, and forgets the oldest until there is room; one that is there stays where it is.
  mutating func insert(_ fingerprint: UInt64, size: Int) {
    guard size <= capacity, places[fingerprint] == nil else { return }
    while bytes > capacity - size || places.count >= maxCount { removeOldest() }
    places[fingerprint] = dropped + ghosts.count
    ghosts.append(Ghost(fingerprint: fingerprint, size: size))
    bytes += size
  }

  /// Forgets one.
  ///
  /// - Returns: whether it was there.
  mutating func remove(_ fingerprint: UInt64) -> Bool {
    guard let place = places.removeValue(forKey: fingerprint) else { return false }
    bytes -= ghosts[place - dropped].size
    ghosts[place - dropped].size = -1
    compact()
    return true
  }

  /// Forgets the oldest one.
  mutating func removeOldest() {
    while first < ghosts.count, ghosts[first].size < 0 { first += 1 }
    guard first < ghosts.count else { return }
    places[ghosts[first].fingerprint] = nil
    bytes -= ghosts[first].size
    first += 1
    compact()
  }

  /// Gives back the room of those that are gone, once they are as many as those that are there; and that of tables that
  /// were made for many more. Either has been preceded by as many removals.
  private mutating func compact() {
    let count = places.count
    guard count > 0 else {
      dropped += ghosts.count
      (ghosts, places, first) = ([], [:], 0)
      return
    }
    let isSparse = TableSize.isSparse(places, least: Self.least)
    guard isSparse || ghosts.count > 2 * count + Self.least else { return }
    if isSparse { places = Dictionary(minimumCapacity: 2 * count) }
    dropped += ghosts.count
    var rest: [Ghost] = []
    // As many as there may be when this is due again.
    rest.reserveCapacity(2 * count + Self.least + 1)
    for ghost in ghosts[first...] where ghost.size >= 0 {
      places[ghost.fingerprint] = dropped + rest.count
      rest.append(ghost)
    }
    ghosts = rest
    first = 0
  }
}
