/// The queues of S3-FIFO (Yang, Zhang, Qiu, Yue, Vigfusson: "FIFO queues are all you need for cache
/// eviction", SOSP 2023). The small queue holds new items. The main queue holds items that were requested
/// again. The ghost queue remembers the fingerprints of items that were evicted from the small queue. This
/// type counts the bytes of items and decides which to evict; the caller stores the entries.
///
/// For the same requests, the type has the same hits as the implementation of libCacheSim. The small queue
/// has a tenth of the capacity. The ghost queue remembers items of nine tenths of the capacity. An item with
/// two visits moves from the small to the main queue. Until the first eviction, new items go to the main
/// queue when the small queue is full.
///
/// A value type: two threads must not use one value at the same time.
package struct S3FIFO<Item: Sendable>: Sendable {
  /// The index of an item in the table of nodes. It is valid until the item is removed or evicted, or until
  /// `compact` assigns a new one.
  package typealias Index = Int32

  /// The queue of a node; `free` for a node without an item.
  enum Queue: Sendable { case small, main, free }

  /// An element of the table of nodes. The nodes of a queue are a linked list.
  struct Node: Sendable {
    /// The item; `nil` in a free node.
    var item: Item?
    /// Identifies the item in the ghost queue.
    let fingerprint: UInt64
    /// The size of the item in bytes.
    var size: Int
    /// The number of visits that count when the item is next the oldest of its queue. Visits that the caller
    /// counts itself are added only then.
    var visits: Int
    /// The queue of the item.
    var queue: Queue
    /// The next newer node of the queue, or the next free node; -1 for none.
    var next: Index
    /// The next older node of the queue; -1 for none.
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

  /// The table of nodes.
  private var nodes: [Node] = []
  /// The first node of the list of free nodes; -1 when no node is free.
  private var firstFree: Index = -1
  /// The small queue.
  private var small = Ends()
  /// The main queue.
  private var main = Ends()
  /// The ghost queue.
  private var ghost: GhostQueue
  /// The capacity of the small queue, in bytes.
  private let smallCapacity: Int
  /// The maximum number of items in the small queue.
  private let smallCount: Int
  /// Whether the memory of tables and `overhead` counts against the capacity.
  private let countsTables: Bool
  /// Whether an item was ever evicted.
  private var hasEvicted = false

  /// The ends and the totals of a queue.
  private struct Ends: Sendable {
    /// The node of the newest item; -1 for an empty queue.
    var newest: Index = -1
    /// The node of the oldest item; -1 for an empty queue.
    var oldest: Index = -1
    /// The total size of the items, in bytes.
    var bytes = 0
    /// The number of items.
    var count = 0
  }

  /// Makes empty queues.
  ///
  /// - Parameters:
  ///   - capacity: the maximum total size of all items, in bytes.
  ///   - maxCount: the maximum number of items.
  ///   - countsTables: whether the memory of the tables counts against the capacity: the table of nodes, the
  ///     ghost queue and `overhead`. If so, the ghost queue remembers only as many items as fit into a tenth
  ///     of the capacity (`GhostQueue.mostBytesOfEach`).
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

  /// The memory that the owner uses in addition to the items, in bytes. The owner sets it. It counts against
  /// the capacity only if tables count.
  package var overhead = 0

  /// The bytes of capacity in use: the items and, if tables count, `overhead` and the tables with their
  /// unused elements.
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

  /// Counts a visit of an item. A caller that counts visits itself passes them to the `visits` parameters
  /// instead.
  package mutating func visit(_ index: Index) { nodes[Int(index)].visits &+= 1 }

  /// Whether the queues can accept an item of a size in bytes. Like libCacheSim, they reject an item that is
  /// larger than the small queue.
  package func admits(size: Int) -> Bool { size <= smallCapacity && size >= 0 && maxCount > 0 }

  /// Inserts an item after a miss, and evicts others until there is room.
  ///
  /// - Parameters:
  ///   - fingerprint: a hash that identifies the item in the ghost queue. Items with the same fingerprint
  ///     count as one item there.
  ///   - size: the size in bytes.
  ///   - visits: returns the number of visits that the caller counted for an item since the last call for
  ///     that item.
  ///   - evicted: receives each evicted item. The index of this item is no longer valid.
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

  /// Sets a new size of an item in bytes, and evicts items until there is room. The item itself may be
  /// evicted.
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

  /// Whether the table of nodes has room for more than four times the current number of items.
  package var isSparse: Bool { nodes.capacity > Self.least && count < nodes.capacity / 4 }

  /// The capacity in nodes up to which the table does not count as sparse.
  private static var least: Int { 64 }

  /// Replaces the table of nodes by one with room for twice the current number of items. A caller should do
  /// this whenever the table is sparse. Then the cost of the copies is constant for each insertion and
  /// removal.
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

  /// Copies the nodes of a queue to the new table, oldest item first, and returns the new ends of the queue.
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

  /// Evicts items until the others fit into the capacity. Call it after `overhead` has grown, or after a new
  /// item made the tables grow.
  package mutating func makeRoom(visits: (Item) -> Int = { _ in 0 }, evicted: (Item) -> Void) {
    makeRoom(for: 0, 0, visits, evicted)
  }

  /// Evicts items until there is room for `size` more bytes and `more` more items.
  private mutating func makeRoom(
    for size: Int, _ more: Int, _ visits: (Item) -> Int, _ evicted: (Item) -> Void
  ) {
    while count > 0, used > capacity - size || count > maxCount - more {
      hasEvicted = true
      // The capacity that tables and overhead leave for items. The main queue is full when its items take
      // this room except the share of the small queue. Measured by the whole capacity, the main queue might
      // never be full.
      let room = capacity - (used - bytes)
      let isMainFull = main.bytes > room - smallCapacity || main.count > maxCount - smallCount
      if isMainFull && main.count > 0 || small.count == 0 {
        evictFromMain(visits, evicted)
      } else {
        evictFromSmall(visits, evicted)
      }
    }
    // All items are evicted here if their removal did not free enough. Then the ghost queue must shrink.
    while used > capacity - size, ghost.count > 0 { ghost.removeOldest() }
    if count == 0, used > capacity - size {
      nodes = []
      firstFree = -1
    }
  }

  /// Evicts the oldest item of the small queue that has fewer than two visits. Items before it, which have at
  /// least two visits, move to the main queue. Evicts nothing when all items move.
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

  /// Evicts the oldest item of the main queue that has no visit. Items before it lose one visit and become
  /// the newest of the queue. Of more than three visits, only three count.
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

  /// Adds the visits that the caller counted for an item to the node.
  private mutating func addVisits(_ index: Index, _ visits: (Item) -> Int) {
    nodes[Int(index)].visits += visits(self[index])
  }

  // MARK: Lists

  /// Puts an item into a free node or a new one, and makes it the newest of a queue.
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

  /// Adds a node, which is in no queue, to the list of free nodes.
  private mutating func release(_ index: Index) {
    nodes[Int(index)].item = nil
    nodes[Int(index)].queue = .free
    nodes[Int(index)].next = firstFree
    firstFree = index
  }

  /// Makes a node, which is in no queue, the newest of a queue.
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

  /// Takes a node out of its queue.
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

  /// Changes the ends and the totals of the small or the main queue.
  private mutating func withEnds(of queue: Queue, _ change: (inout Ends) -> Void) {
    if queue == .small { change(&small) } else { change(&main) }
  }
}
