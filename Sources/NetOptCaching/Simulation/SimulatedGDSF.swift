/// A simulated cache with greedy dual size frequency (Cherkasova, 1998), in which each fetch costs 1. It
/// evicts the entry with the lowest priority. The priority is clock + hits / size at the time of the last
/// request for the entry. The clock is not a time, but the priority of the entry that was evicted last.
struct SimulatedGDSF: SimulatedCache {
  private struct Entry {
    let key: UInt64
    /// The size of the object in bytes.
    let size: Int
    /// The number of requests for the entry, including the one that inserted it.
    var hits: Int
    /// The entry with the lowest priority is evicted first.
    var priority: Double
    /// The number of the last request for the entry. Of two entries with the same priority, the one with the
    /// lower number is evicted first.
    var moment: Int
  }

  /// The capacity in bytes.
  private let capacity: Int
  /// The total size of the objects in the cache, in bytes.
  private var bytes = 0
  /// The priority of the entry that was evicted last.
  private var clock = 0.0
  /// The number of requests so far.
  private var moment = 0
  /// The index of each key in `heap`.
  private var indices: [UInt64: Int] = [:]
  /// The entries as a binary heap: no entry is evicted before its parent. So the entry at index 0 is evicted
  /// next.
  private var heap: [Entry] = []

  init(capacity: Int) { self.capacity = capacity }

  mutating func request(_ key: UInt64, size: Int) -> Bool {
    moment += 1
    if let index = indices[key] {
      heap[index].hits += 1
      heap[index].priority = clock + Double(heap[index].hits) / Double(max(heap[index].size, 1))
      heap[index].moment = moment
      siftDown(index)
      return true
    }
    guard size <= capacity else { return false }
    while bytes > capacity - size { evict() }
    heap.append(
      Entry(key: key, size: size, hits: 1, priority: clock + 1 / Double(max(size, 1)), moment: moment))
    indices[key] = heap.count - 1
    bytes += size
    siftUp(heap.count - 1)
    return false
  }

  /// Evicts the entry with the lowest priority, which becomes the clock.
  private mutating func evict() {
    let entry = heap[0]
    clock = entry.priority
    bytes -= entry.size
    indices[entry.key] = nil
    let last = heap.removeLast()
    guard !heap.isEmpty else { return }
    heap[0] = last
    indices[last.key] = 0
    siftDown(0)
  }

  /// Whether the entry at index `a` is evicted before the entry at index `b`.
  private func comesBefore(_ a: Int, _ b: Int) -> Bool {
    (heap[a].priority, heap[a].moment) < (heap[b].priority, heap[b].moment)
  }

  /// Exchanges two entries of the heap.
  private mutating func swap(_ a: Int, _ b: Int) {
    heap.swapAt(a, b)
    indices[heap[a].key] = a
    indices[heap[b].key] = b
  }

  /// Moves a new entry of the heap towards index 0 until its parent is evicted before it.
  private mutating func siftUp(_ index: Int) {
    var index = index
    while index > 0, comesBefore(index, (index - 1) / 2) {
      swap(index, (index - 1) / 2)
      index = (index - 1) / 2
    }
  }

  /// Moves an entry of the heap away from index 0 until it is evicted before its children.
  private mutating func siftDown(_ index: Int) {
    var index = index
    while true {
      var first = index
      for child in [2 * index + 1, 2 * index + 2] where child < heap.count && comesBefore(child, first) {
        first = child
      }
      if first == index { return }
      swap(index, first)
      index = first
    }
  }
}
