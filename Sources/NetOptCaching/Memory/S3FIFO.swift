/// The queues of S3-FIFO (Yang, Zhang, Qiu, Yue, Vigfusson: "FIFO queues are all you need for cache
/// eviction", SOSP 2023). The small queue holds new items. The main queue holds items that were requested
/// again. The ghost queue remembers the fingerprints of items that left the small queue early. This type
/// weighs items in bytes and decides which to evict; the caller stores the entries.
///
/// The hits equal those of libCacheSim's implementation, request for request. The small queue has a tenth of
/// the capacity, the ghost queue remembers nine tenths of it, and an item with two visits moves to the main
/// queue. While nothing has been evicted and the small queue is full, a new item goes to the main queue at
/// once.
///
/// A value type: two threads must not use one value at the same time.
package struct S3FIFO<Item: Sendable>: Sendable {
  /// The index of an item. It is valid until the item is removed or evicted, or until `compact` assigns a new
  /// one.
  package typealias Index = Int32

  enum Queue: Sendable { case small, main, free }

  struct Node: Sendable {
    var item: Item?
    let fingerprint: UInt64
    var size: Int
    var visits: Int
    var queue: Queue
    var next: Index
    var previous: Index
  }

  /// The capacity in bytes.
  package let capacity: Int
  /// The maximum number of items.
  package let maxCount: Int
  /// The total size of all items, in bytes.
  package private(set) var bytes = 0
  /// The number of items.
  package private(set) var count = 0

  private var nodes: [Node] = []
  private var firstFree: Index = -1
  private var small = Ends()
  private var main = Ends()
  private var ghost: GhostQueue
  private let smallCapacity: Int
  private let smallCount: Int
  private let countsTables: Bool
  private var hasEvicted = false

  private struct Ends: Sendable {
    var newest: Index = -1
    var oldest: Index = -1
    var bytes = 0
    var count = 0
  }

  /// Makes empty queues.
  ///
  /// - Parameters:
  ///   - capacity: the maximum total size of all items, in bytes.
  ///   - maxCount: the maximum number of items.
  ///   - countsTables: whether tables count against the capacity: those of the queues and of the ghost queue,
  ///     and `overhead`. If so, the ghost queue remembers at most as many items as a tenth of the capacity
  ///     holds.
  package init(capacity: Int, maxCount: Int = .max, countsTables: Bool = false) {
    self.capacity = capacity
    self.maxCount = maxCount
    self.countsTables = countsTables
    smallCapacity = capacity / 10
    smallCount = max(maxCount / 10, 1)
    let mostGhosts = countsTables ? capacity / 10 / GhostQueue.mostBytesOfEach : Int.max
    ghost = GhostQueue(
      capacity: capacity / 10 * 9 + capacity % 10 * 9 / 10,
      maxCount: max(min(maxCount / 10 * 9, mostGhosts), 1))
  }

  /// The bytes that the owner's tables and gaps take. They count against the capacity only if tables count.
  package var overhead = 0

  /// The bytes of capacity in use: the items and, if tables count, the allocated size of the tables, full or
  /// not.
  package var used: Int {
    countsTables ? bytes + overhead + TableSize.bytes(of: nodes) + ghost.tableBytes : bytes
  }

  /// The number of items that the ghost queue remembers.
  package var ghostCount: Int { ghost.count }

  /// The item at an index.
  package subscript(index: Index) -> Item {
    guard let item = nodes[Int(index)].item else { preconditionFailure("the place \(index) is free") }
    return item
  }

  /// Counts a visit.
  package mutating func visit(_ index: Index) { nodes[Int(index)].visits &+= 1 }

  /// Whether the queues can accept an item of a size. Like libCacheSim, they reject items larger than the
  /// small queue.
  package func admits(size: Int) -> Bool { size <= smallCapacity && size >= 0 && maxCount > 0 }

  /// Inserts an item that was requested and missed, and evicts others until there is room.
  ///
  /// - Parameters:
  ///   - fingerprint: identifies the item in the ghost queue. The ghost queue does not distinguish items with
  ///     the same fingerprint.
  ///   - size: the size in bytes.
  ///   - visits: returns the number of visits that the caller counted for an item since the last call for
  ///     that item.
  ///   - evicted: receives each evicted item. The item's index is free by then.
  /// - Returns: the item's index, or `nil` when the queues reject the item.
  package mutating func insert(
    _ item: Item, fingerprint: UInt64, size: Int, visits: (Item) -> Int = { _ in 0 }, evicted: (Item) -> Void
  ) -> Index? {
    let wasKnown = ghost.remove(fingerprint)
    guard admits(size: size) else { return nil }
    makeRoom(for: size, 1, visits, evicted)
    let isFilling = !hasEvicted && (small.bytes >= smallCapacity || small.count >= smallCount)
    guard wasKnown || isFilling || size < smallCapacity else { return nil }
    return add(item, fingerprint, size, to: wasKnown || isFilling ? .main : .small)
  }

  /// Sets an item's new size, and evicts items until there is room. The item itself may be evicted.
  package mutating func resize(
    _ index: Index, to size: Int, visits: (Item) -> Int = { _ in 0 }, evicted: (Item) -> Void
  ) {
    let difference = size - nodes[Int(index)].size
    nodes[Int(index)].size = size
    withEnds(of: nodes[Int(index)].queue) { $0.bytes += difference }
    bytes += difference
    makeRoom(for: 0, 0, visits, evicted)
  }

  /// Removes an item.
  package mutating func remove(_ index: Index) {
    unlink(index)
    release(index)
  }

  // MARK: Tables

  /// Whether the queues' table has room for more than four times the current number of items.
  package var isSparse: Bool { nodes.capacity > Self.least && count < nodes.capacity / 4 }

  /// The capacity up to which a table never counts as sparse.
  private static var least: Int { 64 }

  /// Replaces the queues' table with one that has room for twice the current number of items. When the caller
  /// compacts whenever the table is sparse, the cost is constant per item removed before or added until the
  /// next time.
  ///
  /// - Parameter moved: receives each item and its new index.
  package mutating func compact(_ moved: (Item, Index) -> Void) {
    var rest: [Node] = []
    rest.reserveCapacity(2 * count)
    small = move(small, to: &rest, moved)
    main = move(main, to: &rest, moved)
    nodes = rest
    firstFree = -1
  }

  /// Copies a queue, oldest item first, so that neighbours in the queue are neighbours in the table.
  private func move(_ ends: Ends, to rest: inout [Node], _ moved: (Item, Index) -> Void) -> Ends {
    guard ends.oldest >= 0 else { return ends }
    var new = ends
    new.oldest = Index(rest.count)
    var next = ends.oldest
    while next >= 0 {
      var node = nodes[Int(next)]
      next = node.next
      let index = Index(rest.count)
      node.previous = index == new.oldest ? -1 : index - 1
      node.next = next < 0 ? -1 : index + 1
      if let item = node.item { moved(item, index) }
      rest.append(node)
    }
    new.newest = Index(rest.count - 1)
    return new
  }

  // MARK: Eviction

  /// Evicts items until the rest fits. Call it after `overhead` has grown, or after a new item made the
  /// tables grow.
  package mutating func makeRoom(visits: (Item) -> Int = { _ in 0 }, evicted: (Item) -> Void) {
    makeRoom(for: 0, 0, visits, evicted)
  }

  private mutating func makeRoom(
    for size: Int, _ more: Int, _ visits: (Item) -> Int, _ evicted: (Item) -> Void
  ) {
    while count > 0, used > capacity - size || count > maxCount - more {
      hasEvicted = true
      // The room that is left for items. The main queue's share counts from this room: counted from the whole
      // capacity, the main queue might never be full, because tables and overhead use a part.
      let room = capacity - (used - bytes)
      let isMainFull = main.bytes > room - smallCapacity || main.count > maxCount - smallCount
      if isMainFull && main.count > 0 || small.count == 0 {
        evictFromMain(visits, evicted)
      } else {
        evictFromSmall(visits, evicted)
      }
    }
    // The ghost queue shrinks if evicting all items does not free enough.
    while used > capacity - size, ghost.count > 0 { ghost.removeOldest() }
    if count == 0, used > capacity - size {
      nodes = []
      firstFree = -1
    }
  }

  /// Evicts the oldest item of the small queue that has fewer than two visits. Older items with at least two
  /// visits move to the main queue. Evicts nothing when all have moved.
  private mutating func evictFromSmall(_ visits: (Item) -> Int, _ evicted: (Item) -> Void) {
    while small.oldest >= 0 {
      let index = small.oldest
      addVisits(index, visits)
      unlink(index)
      if nodes[Int(index)].visits >= 2 {
        nodes[Int(index)].visits = 0
        link(index, to: .main)
        continue
      }
      let node = nodes[Int(index)]
      ghost.insert(node.fingerprint, size: node.size)
      let item = self[index]
      release(index)
      evicted(item)
      return
    }
  }

  /// Evicts the oldest item of the main queue that has no visit. Older items with visits lose one (of at most
  /// three) and go to the back of the queue.
  private mutating func evictFromMain(_ visits: (Item) -> Int, _ evicted: (Item) -> Void) {
    while main.oldest >= 0 {
      let index = main.oldest
      addVisits(index, visits)
      unlink(index)
      if nodes[Int(index)].visits >= 1 {
        nodes[Int(index)].visits = min(nodes[Int(index)].visits, 3) - 1
        link(index, to: .main)
        continue
      }
      let item = self[index]
      release(index)
      evicted(item)
      return
    }
  }

  private mutating func addVisits(_ index: Index, _ visits: (Item) -> Int) {
    nodes[Int(index)].visits += visits(self[index])
  }

  // MARK: Lists

  private mutating func add(_ item: Item, _ fingerprint: UInt64, _ size: Int, to queue: Queue) -> Index {
    let node = Node(
      item: item, fingerprint: fingerprint, size: size, visits: 0, queue: .free, next: -1, previous: -1)
    let index: Index
    if firstFree >= 0 {
      index = firstFree
      firstFree = nodes[Int(index)].next
      nodes[Int(index)] = node
    } else {
      index = Index(nodes.count)
      nodes.append(node)
    }
    link(index, to: queue)
    return index
  }

  private mutating func release(_ index: Index) {
    nodes[Int(index)].item = nil
    nodes[Int(index)].queue = .free
    nodes[Int(index)].next = firstFree
    firstFree = index
  }

  private mutating func link(_ index: Index, to queue: Queue) {
    let size = nodes[Int(index)].size
    let newest = queue == .small ? small.newest : main.newest
    nodes[Int(index)].queue = queue
    nodes[Int(index)].previous = newest
    nodes[Int(index)].next = -1
    if newest >= 0 { nodes[Int(newest)].next = index }
    withEnds(of: queue) { ends in
      ends.newest = index
      if ends.oldest < 0 { ends.oldest = index }
      ends.bytes += size
      ends.count += 1
    }
    bytes += size
    count += 1
  }

  private mutating func unlink(_ index: Index) {
    let node = nodes[Int(index)]
    precondition(node.queue != .free, "the place \(index) is free")
    if node.previous >= 0 { nodes[Int(node.previous)].next = node.next }
    if node.next >= 0 { nodes[Int(node.next)].previous = node.previous }
    withEnds(of: node.queue) { ends in
      if ends.newest == index { ends.newest = node.previous }
      if ends.oldest == index { ends.oldest = node.next }
      ends.bytes -= node.size
      ends.count -= 1
    }
    bytes -= node.size
    count -= 1
  }

  private mutating func withEnds(of queue: Queue, _ change: (inout Ends) -> Void) {
    if queue == .small { change(&small) } else { change(&main) }
  }
}
