import NetOptCore

/// An estimate of the freed memory of a store that the allocator still keeps resident.
///
/// glibc keeps freed heap memory resident for the next allocation that fits. A store whose entries have
/// similar sizes reuses that memory. When large entries replace small ones, the freed blocks stay where they
/// are, and the large entries get new memory. So this type counts bytes in size classes that are powers of
/// eight, and remembers the peak of each class. The difference between peak and current bytes may be idle
/// until whole pages of it are returned to the system. Gaps between small blocks that stay contain no whole
/// pages; they count as used until new blocks fill them.
struct HeapUse: Sendable {
  /// The first size class of large blocks, from 16 KiB on. Such blocks are whole pages except for their ends.
  private static let large = 5

  /// Returning memory delays other allocations, because malloc_trim(3) locks each arena of the process. So
  /// the pause after a call grows with the square of the call's duration: 20 ms of work are followed by a
  /// pause of 20 ms, 100 ms by one of 500 ms.
  private static let briefWork = Duration.milliseconds(20)
  /// The longest pause, in nanoseconds.
  private static let longestRest = 86_400e9

  private let most: Int
  private let mostGaps: Int
  private var held = InlineArray<9, Int>(repeating: 0)
  private var peaks = InlineArray<9, Int>(repeating: 0)
  /// The bytes by which all classes are below their peaks.
  private(set) var idle = 0
  /// The part of `idle` that could not be returned to the system and has not been reused since. It is an
  /// estimate, because only the process-wide change of resident memory is known; so `mostGaps` limits it.
  private(set) var gaps = 0
  /// The bytes of large blocks freed since memory was returned last.
  private var freed = 0
  private var isGivingBack = false
  private var restsUntil: MonotonicInstant?

  /// - Parameters:
  ///   - most: how many bytes may be idle before memory is returned.
  ///   - mostGaps: the upper limit of `gaps`, in bytes.
  init(most: Int, mostGaps: Int) {
    self.most = most
    self.mostGaps = mostGaps
  }

  /// Whether to return memory to the system now. It is true for one caller only, who must call `gaveBack`
  /// afterwards.
  ///
  /// - Parameter now: returns the time; called only when enough memory is idle.
  mutating func isDue(at now: () -> MonotonicInstant) -> Bool {
    // A freed large block is rarely reused by the next one, which has another size.
    guard !isGivingBack, idle - gaps > most || freed > 2 * most else { return false }
    if let restsUntil, now() < restsUntil { return false }
    isGivingBack = true
    return true
  }

  /// Counts the entries of a new slot.
  mutating func add(_ entries: [CacheEntry]) { count(entries, 1) }

  /// Stops counting the entries of a removed slot.
  mutating func remove(_ entries: [CacheEntry]) { count(entries, -1) }

  /// Counts new entries in place of old ones. A body that is in both, as after a revalidation, was not freed.
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

  /// Updates the estimates after the heap returned whole pages.
  ///
  /// - Parameters:
  ///   - heap: the result. The returned bytes count as those of large blocks first.
  ///   - begun: when the call began.
  ///   - now: when the call ended.
  mutating func gaveBack(_ heap: GivenBackHeap, from begun: MonotonicInstant, to now: MonotonicInstant) {
    // Treats an unknown result as if everything was returned.
    let returned = heap.returned.map { max($0 - freed, 0) } ?? .max
    isGivingBack = false
    let work = now - begun
    // The pause is at most a day, for example when the process was stopped during the call.
    let rest = min(Double(work.nanoseconds) * (work / Self.briefWork), Self.longestRest)
    restsUntil = now + .nanoseconds(Int64(rest))
    freed = 0
    for sizes in Self.large..<held.count { peaks[sizes] = held[sizes] }
    let small = (0..<Self.large).reduce(0) { $0 + peaks[$1] - held[$1] }
    // Limits the bytes that could not be returned to the free bytes of the heap.
    let left = min(max(small - min(returned, small), 0), heap.free, mostGaps)
    let share = Double(left) / Double(max(small, 1))
    idle = 0
    for sizes in 0..<Self.large {
      peaks[sizes] = held[sizes] + Int(Double(peaks[sizes] - held[sizes]) * share)
      idle += peaks[sizes] - held[sizes]
    }
    gaps = idle
  }

  /// Counts the entries. A body is one block; all other parts are many small blocks.
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
