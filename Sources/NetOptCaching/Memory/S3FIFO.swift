/// The queues of S3-FIFO (Yang, Zhang, Qiu, Yue, Vigfusson: "FIFO queues are all you need for cache eviction", SOSP 2023):
/// a small queue for what is new, a main one for what was asked for again, and a ghost, which remembers what left the
/// small queue too early. It weighs items in bytes, and decides; it holds nothing itself.
///
/// It behaves as libCacheSim's does, whose hit ratios it has to the last request: a tenth for the small queue, nine
/// tenths of the capacity in the ghost, two visits for going on to the main queue; what comes when nothing has been
/// evicted yet and the small queue is full goes to the main queue at once.
///
/// A value: not to be used by two threads at once.
package struct S3FIFO<Item: Sendable>: Sendable {
  /// An item's place. It is the item's own until that is removed or evicted, or `compact` gives it another one.
  package typealias Place = Int32

  enum Queue: Sendable { case small, main, free }

  struct Node: Sendable {
    var item: Item?
    let fingerprint: UInt64
    var size: Int
    var visits: Int
    var queue: Queue
    var next: Place
    var previous: Place
  }

  /// The most bytes.
  package let capacity: Int
  /// The most items.
  package let maxCount: Int
  /// How many bytes there are.
  package private(set) var bytes = 0
  /// How many items there are.
  package private(set) var count = 0

  private var nodes: [Node] = []
  private var free: Place = -1
  private var small = Ends()
  private var main = Ends()
  private var ghost: GhostQueue
  private let smallCapacity: Int
  private let smallCount: Int
  private let countsTables: Bool
  private var hasEvicted = false

  private struct Ends: Sendable {
    var newest: Place = -1
    var oldest: Place = -1
    var bytes = 0
    var count = 0
  }

  /// Makes empty queues.
  ///
  /// - Parameters:
  ///   - capacity: the most bytes of all items.
  ///   - maxCount: the most items.
  ///   - countsTables: whether the tables take their part of the capacity: those of the queues, of the ghost, which remembers
  ///     no more than what takes a tenth, and `overhead`.
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

  /// What the owner's tables and the like take of the capacity, where tables count.
  package var overhead = 0

  /// What the items take of the capacity and, where they count, the tables, however full they are.
  package var used: Int {
    countsTables ? bytes + overhead + TableSize.bytes(of: nodes) + ghost.tableBytes : bytes
  }

  /// How many items the ghost remembers.
  package var ghostCount: Int { ghost.count }

  /// The item at a place.
  package subscript(place: Place) -> Item {
    guard let item = nodes[Int(place)].item else { preconditionFailure("the place \(place) is free") }
    return item
  }

  /// Counts a visit.
  package mutating func visit(_ place: Place) { nodes[Int(place)].visits &+= 1 }

  /// Whether an item of a size has a chance: like libCacheSim's, this takes nothing larger than the small queue.
  package func admits(size: Int) -> Bool { size <= smallCapacity && size >= 0 && maxCount > 0 }

  /// Takes an item that was asked for and is not there, and evicts others until there is room.
  ///
  /// - Parameters:
  ///   - fingerprint: what the ghost knows it by. Items with one fingerprint are taken for each other there.
  ///   - size: in bytes.
  ///   - visits: how often an item was visited elsewhere since this was last asked about it.
  ///   - evicted: is told of each item that is evicted. The item's place is free then.
  /// - Returns: its place; `nil` when it is not taken.
  package mutating func insert(
    _ item: Item, fingerprint: UInt64, size: Int, visits: (Item) -> Int = { _ in 0 }, evicted: (Item) -> Void
  ) -> Place? {
    let wasKnown = ghost.remove(fingerprint)
    guard admits(size: size) else { return nil }
    makeRoom(for: size, 1, visits, evicted)
    let isFilling = !hasEvicted && (small.bytes >= smallCapacity || small.count >= smallCount)
    guard wasKnown || isFilling || size < smallCapacity else { return nil }
    return add(item, fingerprint, size, to: wasKnown || isFilling ? .main : .small)
  }

  /// Takes note of an item's new size, and evicts until there is room, maybe the item itself.
  package mutating func resize(
    _ place: Place, to size: Int, visits: (Item) -> Int = { _ in 0 }, evicted: (Item) -> Void
  ) {
    let difference = size - nodes[Int(place)].size
    nodes[Int(place)].size = size
    withEnds(of: nodes[Int(place)].queue) { $0.bytes += difference }
    bytes += difference
    makeRoom(for: 0, 0, visits, evicted)
  }

  /// Forgets an item.
  package mutating func remove(_ place: Place) {
    unlink(place)
    release(place)
  }

  // MARK: Tables

  /// Whether the queues' table was made for more than four times as many items as there are.
  package var isSparse: Bool { nodes.capacity > Self.least && count < nodes.capacity / 4 }

  /// Tables that are no larger than this are left as they are.
  private static var least: Int { 64 }

  /// Makes the queues' table one for twice as many items as there are. Done whenever it is sparse this costs a constant for
  /// each item that was removed or is added until the next time.
  ///
  /// - Parameter moved: is told each item's new place.
  package mutating func compact(_ moved: (Item, Place) -> Void) {
    var rest: [Node] = []
    rest.reserveCapacity(2 * count)
    small = move(small, to: &rest, moved)
    main = move(main, to: &rest, moved)
    nodes = rest
    free = -1
  }

  /// Copies a queue, the oldest first, so that neighbours are neighbours.
  private func move(_ ends: Ends, to rest: inout [Node], _ moved: (Item, Place) -> Void) -> Ends {
    guard ends.oldest >= 0 else { return ends }
    var new = ends
    new.oldest = Place(rest.count)
    var next = ends.oldest
    while next >= 0 {
      var node = nodes[Int(next)]
      next = node.next
      let place = Place(rest.count)
      node.previous = place == new.oldest ? -1 : place - 1
      node.next = next < 0 ? -1 : place + 1
      if let item = node.item { moved(item, place) }
      rest.append(node)
    }
    new.newest = Place(rest.count - 1)
    return new
  }

  // MARK: Eviction

  /// Evicts until what there is fits: after `overhead` has grown, or an item has come that made the tables grow.
  package mutating func makeRoom(visits: (Item) -> Int = { _ in 0 }, evicted: (Item) -> Void) {
    makeRoom(for: 0, 0, visits, evicted)
  }

  private mutating func makeRoom(
    for size: Int, _ more: Int, _ visits: (Item) -> Int, _ evicted: (Item) -> Void
  ) {
    while count > 0, used > capacity - size || count > maxCount - more {
      hasEvicted = true
      // Of what is left for items: the rest of the room is no item's, and must not keep the main queue from being full.
      let room = capacity - (used - bytes)
      let isMainFull = main.bytes > room - smallCapacity || main.count > maxCount - smallCount
      if isMainFull && main.count > 0 || small.count == 0 {
        evictFromMain(visits, evicted)
      } else {
        evictFromSmall(visits, evicted)
      }
    }
    // What is remembered gives way to what is there, if that alone does not fit.
    while used > capacity - size, ghost.count > 0 { ghost.removeOldest() }
    if count == 0, used > capacity - size {
      nodes = []
      free = -1
    }
  }

  /// Moves what was visited to the main queue, until one is evicted or none is left.
  private mutating func evictFromSmall(_ visits: (Item) -> Int, _ evicted: (Item) -> Void) {
    while small.oldest >= 0 {
      let place = small.oldest
      absorb(place, visits)
      unlink(place)
      if nodes[Int(place)].visits >= 2 {
        nodes[Int(place)].visits = 0
        link(place, to: .main)
        continue
      }
      let node = nodes[Int(place)]
      ghost.insert(node.fingerprint, size: node.size)
      let item = self[place]
      release(place)
      evicted(item)
      return
    }
  }

  /// Gives what was visited another round, until one is evicted or none is left.
  private mutating func evictFromMain(_ visits: (Item) -> Int, _ evicted: (Item) -> Void) {
    while main.oldest >= 0 {
      let place = main.oldest
      absorb(place, visits)
      unlink(place)
      if nodes[Int(place)].visits >= 1 {
        nodes[Int(place)].visits = min(nodes[Int(place)].visits, 3) - 1
        link(place, to: .main)
        continue
      }
      let item = self[place]
      release(place)
      evicted(item)
      return
    }
  }

  private mutating func absorb(_ place: Place, _ visits: (Item) -> Int) {
    nodes[Int(place)].visits += visits(self[place])
  }

  // MARK: Lists

  private mutating func add(_ item: Item, _ fingerprint: UInt64, _ size: Int, to queue: Queue) -> Place {
    let node = Node(
      item: item, fingerprint: fingerprint, size: size, visits: 0, queue: .free, next: -1, previous: -1)
    let place: Place
    if free >= 0 {
      place = free
      free = nodes[Int(place)].next
      nodes[Int(place)] = node
    } else {
      place = Place(nodes.count)
      nodes.append(node)
    }
    link(place, to: queue)
    return place
  }

  private mutating func release(_ place: Place) {
    nodes[Int(place)].item = nil
    nodes[Int(place)].queue = .free
    nodes[Int(place)].next = free
    free = place
  }

  private mutating func link(_ place: Place, to queue: Queue) {
    let size = nodes[Int(place)].size
    let newest = queue == .small ? small.newest : main.newest
    nodes[Int(place)].queue = queue
    nodes[Int(place)].previous = newest
    nodes[Int(place)].next = -1
    if newest >= 0 { nodes[Int(newest)].next = place }
    withEnds(of: queue) { ends in
      ends.newest = place
      if ends.oldest < 0 { ends.oldest = place }
      ends.bytes += size
      ends.count += 1
    }
    bytes += size
    count += 1
  }

  private mutating func unlink(_ place: Place) {
    let node = nodes[Int(place)]
    precondition(node.queue != .free, "the place \(place) is free")
    if node.previous >= 0 { nodes[Int(node.previous)].next = node.next }
    if node.next >= 0 { nodes[Int(node.next)].previous = node.previous }
    withEnds(of: node.queue) { ends in
      if ends.newest == place { ends.newest = node.previous }
      if ends.oldest == place { ends.oldest = node.next }
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
