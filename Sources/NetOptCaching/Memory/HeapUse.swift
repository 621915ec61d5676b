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

  private let most: Int
  private var held = InlineArray<9, Int>(repeating: 0)
  private var peaks = InlineArray<9, Int>(repeating: 0)
  /// The sum of what is missing of each size.
  private(set) var idle = 0
  /// What could not be given back of it, and has not been filled since.
  private(set) var gaps = 0
  /// How much of large blocks was freed since the last time.
  private var freed = 0
  private var isGivingBack = false

  /// - Parameter most: how many bytes may lie idle before they are given back.
  init(most: Int) { self.most = most }

  /// Whether it is time to give back: true for one caller, who calls `gaveBack` afterwards.
  mutating func isDue() -> Bool {
    // A large block that is freed is seldom filled by the next one, which has another size.
    guard !isGivingBack, idle - gaps > most || freed > 4 * most else { return false }
    isGivingBack = true
    return true
  }

  /// Takes note of a slot's entries.
  mutating func add(_ entries: [CacheEntry]) { count(entries, 1) }

  /// Takes note of the end of a slot's entries.
  mutating func remove(_ entries: [CacheEntry]) { count(entries, -1) }

  /// Whole pages were given back.
  ///
  /// - Parameter heap: what came of it. Of what was returned that of large blocks comes first.
  mutating func gaveBack(_ heap: SystemHeap.GivenBack) {
    let returned = max(heap.returned - freed, 0)
    isGivingBack = false
    freed = 0
    for sizes in Self.large..<held.count { peaks[sizes] = held[sizes] }
    let small = (0..<Self.large).reduce(0) { $0 + peaks[$1] - held[$1] }
    // More than what is free cannot be left.
    let left = min(max(small - returned, 0), heap.free)
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
      change(min((Int.bitWidth - body.leadingZeroBitCount) / 3, held.count - 1), sign * body)
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
