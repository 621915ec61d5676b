/// A simulated cache. It stores no data, and tells for each request whether a real cache would have a hit.
package protocol SimulatedCache: Sendable {
  /// Processes a request.
  ///
  /// - Parameters:
  ///   - key: the requested key.
  ///   - size: the size of the requested object in bytes.
  /// - Returns: whether the request is a hit. After a miss, the object is in the cache if the policy accepts
  ///   it.
  mutating func request(_ key: UInt64, size: Int) -> Bool
}

/// The eviction policies of simulated caches.
package enum SimulatedPolicy: String, CaseIterable, Sendable {
  /// S3-FIFO, as in the memory tier.
  case s3fifo
  /// Greedy dual size frequency (GDSF), as in the disk tier, but with the same cost of a fetch for all
  /// entries.
  case gdsf
  /// Evicts the least recently used entry first.
  case lru
  /// Evicts the entry first that was inserted first.
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

/// A simulated cache with S3-FIFO. It uses the queues of the memory tier, with keys as items.
struct SimulatedS3FIFO: SimulatedCache {
  private var queues: S3FIFO<UInt64>
  /// The index of each key in `queues`.
  private var indices: [UInt64: S3FIFO<UInt64>.Index] = [:]

  init(capacity: Int) { queues = S3FIFO(capacity: capacity) }

  mutating func request(_ key: UInt64, size: Int) -> Bool {
    if let index = indices[key] {
      queues.visit(index)
      return true
    }
    var gone: [UInt64] = []
    let index = queues.insert(key, fingerprint: key, size: size) { gone.append($0) }
    for key in gone { indices[key] = nil }
    indices[key] = index
    return false
  }
}

/// A simulated cache that evicts the oldest entry of one queue. The queue is in the order of insertion (FIFO)
/// or of use (LRU).
struct SimulatedQueue: SimulatedCache {
  private struct Node {
    let key: UInt64
    /// The size of the object in bytes.
    let size: Int
    /// The index of the next newer node; -1 for none.
    var newer: Int
    /// The index of the next older node; -1 for none.
    var older: Int
  }

  /// The capacity in bytes.
  private let capacity: Int
  /// Whether a hit makes the entry the newest of the queue.
  private let movesHits: Bool
  /// The total size of the objects in the cache, in bytes.
  private var bytes = 0
  /// The index of each key in `nodes`.
  private var indices: [UInt64: Int] = [:]
  private var nodes: [Node] = []
  /// The indices of nodes that are not in the queue.
  private var free: [Int] = []
  /// The index of the newest node; -1 for an empty queue.
  private var newest = -1
  /// The index of the oldest node; -1 for an empty queue.
  private var oldest = -1

  /// - Parameters:
  ///   - capacity: the capacity in bytes.
  ///   - movesHits: whether a hit makes the entry the newest of the queue: true for LRU, false for FIFO.
  init(capacity: Int, movesHits: Bool) {
    self.capacity = capacity
    self.movesHits = movesHits
  }

  mutating func request(_ key: UInt64, size: Int) -> Bool {
    if let index = indices[key] {
      if movesHits, index != newest {
        unlink(index)
        link(index)
      }
      return true
    }
    guard size <= capacity else { return false }
    while bytes > capacity - size { evict() }
    let node = Node(key: key, size: size, newer: -1, older: -1)
    let index = free.popLast() ?? nodes.count
    if index == nodes.count { nodes.append(node) } else { nodes[index] = node }
    indices[key] = index
    bytes += size
    link(index)
    return false
  }

  /// Evicts the oldest entry.
  private mutating func evict() {
    let index = oldest
    unlink(index)
    indices[nodes[index].key] = nil
    bytes -= nodes[index].size
    free.append(index)
  }

  /// Makes a node, which is not in the queue, the newest of the queue.
  private mutating func link(_ index: Int) {
    nodes[index].older = newest
    nodes[index].newer = -1
    if newest >= 0 { nodes[newest].newer = index }
    newest = index
    if oldest < 0 { oldest = index }
  }

  /// Takes a node out of the queue.
  private mutating func unlink(_ index: Int) {
    let node = nodes[index]
    if node.newer >= 0 { nodes[node.newer].older = node.older } else { newest = node.older }
    if node.older >= 0 { nodes[node.older].newer = node.newer } else { oldest = node.newer }
  }
}
