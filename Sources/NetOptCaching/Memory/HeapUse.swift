import NetOptCore

/// How much memory of a store the allocator may keep that nothing is in any more.
///
/// What is freed inside glibc's heap stays resident for the next that fits into it. That is how a store whose entries are of
/// one kind goes on using the same memory. When small entries give way to large ones it is not: what was freed stays where it is,
/// and the large ones get memory of their own. So sizes are kept apart by powers of eight, with how much there is of each
/// and how much there was: what is missing may be lying idle, until whole pages of it are given back to the system. Gaps between
/// small blocks that stay have no whole pages; they take their part of the room until they are filled.
struct HeapUse: Sendable {
  /// Blocks from 16 KiB on, which are whole pages but for their ends.
  private static let large = 5

  /// Giving back holds up others who allocate (malloc_trim(3) locks each arena of the process), so it is done the less often the
  /// longer it takes. What takes so long may be done again after as long a time; what takes 100 ms, after 500 ms.
  private static let briefWork = Duration.milliseconds(20)
  /// The longest rest, in nanoseconds.
  private static let longestRest = 86_400e9

  private let most: Int
  private let mostGaps: Int
  private var held = InlineArray<9, Int>(repeating: 0)
  private var peaks = InlineArray<9, Int>(repeating: 0)
  /// The sum of what is missing of each size.
  private(set) var idle = 0
  /// What could not be given back of it, and has not been filled since. It is an estimate, from what the whole process gave back,
  /// so that there is a limit to what goes for its sake.
  private(set) var gaps = 0
  /// How much of large blocks was freed since the last time.
  private var freed = 0
  private var isGivingBack = false
  private var restsUntil: MonotonicInstant?

  /// - Parameters:
  ///   - most: how many bytes may lie idle before they are given back.
  ///   - mostGaps: the most that gaps count for.
  init(most: Int, mostGaps: Int) {
    self.most = most
    self.mostGaps = mostGaps
  }

  /// Whether it is time to give back: true for one caller, who calls `gaveBack` afterwards.
  ///
  /// - Parameter now: asked for when nothing else speaks against it.
  mutating func isDue(at now: () -> MonotonicInstant) -> Bool {
    // A large block that is freed is seldom filled by the next one, which has another size.
    guard !isGivingBack, idle - gaps > most || freed > 2 * most else { return false }
    if let restsUntil, now() < restsUntil { return false }
    isGivingBack = true
    return true
  }

  /// Takes note of a slot's entries.
  mutating func add(_ entries: [CacheEntry]) { count(entries, 1) }

  /// Takes note of the end of a slot's entries.
  mutating func remove(_ entries: [CacheEntry]) { count(entries, -1) }

  /// Takes note of entries that took the place of others. A body that is in both, as after a revalidation, was not freed.
  mutating func replace(_ old: [CacheEntry], with new: [CacheEntry]) {
    remove(old)
    add(new)
    for entry in old where Self.sizes(of: entry.body) >= Self.large {
      let block = Self.block(of: entry.body)
      if new.contains(where: { Self.block(of: $0.body) == block }) { freed -= entry.body.capacity }
    }
  }

  private static func block(of body: [UInt8]) -> UnsafePointer<UInt8>? {
    body.withUnsafeBufferPointer { $0.baseAddress }
  }

  private static func sizes(of body: [UInt8]) -> Int {
    min((Int.bitWidth - body.capacity.leadingZeroBitCount) / 3, 8)
  }

  /// Whole pages were given back.
  ///
  /// - Parameters:
  ///   - heap: what came of it. Of what was returned that of large blocks comes first.
  ///   - begun: when that began.
  ///   - now: when it ended.
  mutating func gaveBack(_ heap: GivenBackHeap, from begun: MonotonicInstant, to now: MonotonicInstant) {
    // What cannot be known counts as returned.
    let returned = heap.returned.map { max($0 - freed, 0) } ?? .max
    isGivingBack = false
    let work = now - begun
    // A process that was stopped meanwhile rests for a day at most.
    let rest = min(Double(work.nanoseconds) * (work / Self.briefWork), Self.longestRest)
    restsUntil = now + .nanoseconds(Int64(rest))
    freed = 0
    for sizes in Self.large..<held.count { peaks[sizes] = held[sizes] }
    let small = (0..<Self.large).reduce(0) { $0 + peaks[$1] - held[$1] }
    // More than what is free cannot be left.
    let left = min(max(small - min(returned, small), 0), heap.free, mostGaps)
    let share = Double(left) / Double(max(small, 1))
    idle = 0
    for sizes in 0..<Self.large {
      peaks[sizes] = held[sizes] + Int(Double(peaks[sizes] - held[sizes]) * share)
      idle += peaks[sizes] - held[sizes]
    }
    gaps = idle
  }

  /// A body is in one block, everything else in many small ones.
  private mutating func count(_ entries: [CacheEntry], _ sign: Int) {
    if entries.isEmpty { return }
    var rest = MemorySlot.weight(of: entries)
    for entry in entries where !entry.body.isEmpty {
      let body = entry.body.capacity
      rest -= body
      change(Self.sizes(of: entry.body), sign * body)
    }
    change(0, sign * rest)
  }

  private mutating func change(_ sizes: Int, _ bytes: Int) {
    let before = peaks[sizes] - held[sizes]
    held[sizes] += bytes
    if sizes >= Self.large, bytes < 0 { freed -= bytes }
    peaks[sizes] = max(peaks[sizes], held[sizes])
    idle += peaks[sizes] - held[sizes] - before
    gaps = min(gaps, idle)
  }
}
