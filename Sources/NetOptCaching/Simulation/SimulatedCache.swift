/// A simulated cache, which stores no data and only tells whether each request would be a hit.
package protocol SimulatedCache: Sendable {
  /// Processes a request.
  ///
  /// - Parameters:
  ///   - key: the requested key.
  ///   - size: the size of the requested object in bytes.
  /// - Returns: whether the request is a hit. After a miss the cache contains the object, if the policy
  ///   accepts it.
  mutating func request(_ key: UInt64, size: Int) -> Bool
}

/// The eviction policies that can be replayed.
package enum SimulatedPolicy: String, CaseIterable, Sendable {
  /// S3-FIFO, as in the memory tier.
  case s3fifo
  /// Greedy dual size frequency (GDSF), as in the disk tier, with the same cost for all entries.
  case gdsf
  /// Evicts the least recently used entry first.
  case lru
  /// Evicts the oldest entry first.
  case fifo

  /// Makes an empty cache.
  ///
  /// - Parameter capacity: the capacity in bytes.
  package func cache(capacity: Int) -> any SimulatedCache {
    switch self {
    case .s3fifo: SimulatedS3FIFO(capacity: capacity)
    case .gdsf: SimulatedGDSF(capacity: capacity)
    case .lru: SimulatedQueue(capacity: capacity, movesHits: true)
    case .fifo: SimulatedQueue(capacity: capacity, movesHits: false)
    }
  }
}

/// The queues of the memory tier, with keys as items.
struct SimulatedS3FIFO: SimulatedCache {
  private var queues: S3FIFO<UInt64>
  private var places: [UInt64: S3FIFO<UInt64>.Place] = [:]

  init(capacity: Int) { queues = S3FIFO(capacity: capacity) }

  mutating func request(_ key: UInt64, size: Int) -> Bool {
    if let place = places[key] {
      queues.visit(place)
      return true
    }
    var gone: [UInt64] = []
    let place = queues.insert(key, fingerprint: key, size: size) { gone.append($0) }
    for key in gone { places[key] = nil }
    places[key] = place
    return false
  }
}

/// One queue, in the order of insertion or of use.
struct SimulatedQueue: SimulatedCache {
  private struct Node {
    let key: UInt64
    let size: Int
    var newer: Int
    var older: Int
  }

  private let capacity: Int
  private let movesHits: Bool
  private var bytes = 0
  private var places: [UInt64: Int] = [:]
  private var nodes: [Node] = []
  private var free: [Int] = []
  private var newest = -1
  private var oldest = -1

  init(capacity: Int, movesHits: Bool) {
    self.capacity = capacity
    self.movesHits = movesHits
  }

  mutating func request(_ key: UInt64, size: Int) -> Bool {
    if let place = places[key] {
      if movesHits, place != newest {
        unlink(place)
        link(place)
      }
      return true
    }
    guard size <= capacity else { return false }
    while bytes > capacity - size { evict() }
    let node = Node(key: key, size: size, newer: -1, older: -1)
    let place = free.popLast() ?? nodes.count
    if place == nodes.count { nodes.append(node) } else { nodes[place] = node }
    places[key] = place
    bytes += size
    link(place)
    return false
  }

  private mutating func evict() {
    let place = oldest
    unlink(place)
    places[nodes[place].key] = nil
    bytes -= nodes[place].size
    free.append(place)
  }

  private mutating func link(_ place: Int) {
    nodes[place].older = newest
    nodes[place].newer = -1
    if newest >= 0 { nodes[newest].newer = place }
    newest = place
    if oldest < 0 { oldest = place }
  }

  private mutating func unlink(_ place: Int) {
    let node = nodes[place]
    if node.newer >= 0 { nodes[node.newer].older = node.older } else { newest = node.older }
    if node.older >= 0 { nodes[node.older].newer = node.newer } else { oldest = node.newer }
  }
}
