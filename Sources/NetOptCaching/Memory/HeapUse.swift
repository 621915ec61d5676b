import NetOptCore

/// Estimates how much freed memory of a store the allocator still keeps resident, and decides when to return
/// this memory to the system.
///
/// glibc keeps freed heap memory resident for the next allocation that fits. A store whose entries have
/// similar sizes reuses this memory. But when large entries replace small ones, the freed blocks stay unused,
/// and the large entries get new memory. So this type counts the allocated bytes in size classes, and
/// remembers the peak of each class. The upper bound of a class is eight times that of the class before. The
/// difference between the peak and the current bytes is called idle: this memory may be free but still
/// resident.
///
/// Returning memory works only for whole pages. The gaps between small blocks that stay contain no whole
/// pages, so they cannot be returned. They are a part of the idle memory that `isDue` does not count.
struct HeapUse: Sendable {
  /// The first size class of large blocks, which have at least 16 KiB. All of a large block except its ends
  /// consists of whole pages.
  private static let firstLargeClass = 5

  /// The duration of a call to `ProcessHeap.trim` after which the pause is as long as the call. The pause
  /// grows with the square of the duration of the call: after a call of 100 ms, it is 500 ms. Long calls must
  /// be rare, because they delay allocations of the whole program: malloc_trim(3) locks each arena.
  private static let briefWork = Duration.milliseconds(20)
  /// The longest pause, in nanoseconds: one day.
  private static let longestPause = 86_400e9

  /// The limit for memory that may be returned, in bytes. A return is due when `idle` minus `gaps` exceeds this
  /// limit, or when `freed` exceeds twice this limit.
  private let maxIdle: Int
  /// The upper limit of `gaps`, in bytes.
  private let maxGaps: Int
  /// The allocated bytes in each size class.
  private var current = InlineArray<9, Int>(repeating: 0)
  /// The most allocated bytes that each class had since memory was returned last. For small classes, it
  /// includes the gaps that remained.
  private var peaks = InlineArray<9, Int>(repeating: 0)
  /// The idle bytes: the sum of peak minus current bytes over all classes.
  private(set) var idle = 0
  /// The part of `idle` that could not be returned to the system and has not been reused since, in bytes. It
  /// is an estimate, because only the change of resident memory of the whole process is known. So it has the
  /// limit `maxGaps`.
  private(set) var gaps = 0
  /// The bytes of large blocks that were freed since memory was returned last.
  private var freed = 0
  /// Whether a caller of `isDue` is returning memory and has not yet called `recordTrim`.
  private var isTrimming = false
  /// The end of the pause after the last return of memory, by the monotonic clock.
  private var pausedUntil: MonotonicInstant?

  /// Makes an estimate for an empty store.
  ///
  /// - Parameters:
  ///   - maxIdle: the limit for memory that may be returned, in bytes.
  ///   - maxGaps: the upper limit of `gaps`, in bytes.
  init(maxIdle: Int, maxGaps: Int) {
    self.maxIdle = maxIdle
    self.maxGaps = maxGaps
  }

  /// Whether the caller must now return memory to the system and then call `recordTrim`. After the method has
  /// returned true, it returns false to all callers until `recordTrim` is called.
  ///
  /// - Parameter now: returns the time of the monotonic clock. `isDue` calls this closure only when a
  ///   limit is exceeded and an earlier return of memory has set a pause.
  mutating func isDue(at now: () -> MonotonicInstant) -> Bool {
    // Many freed large blocks are reason enough, even if `idle` is small: new large blocks make `idle` smaller,
    // but they rarely fit into the freed ones.
    guard !isTrimming, idle - gaps > maxIdle || freed > 2 * maxIdle else { return false }
    if let pausedUntil, now() < pausedUntil { return false }
    isTrimming = true
    return true
  }

  /// Adds the bytes of the entries of a new slot.
  mutating func add(_ entries: [CacheEntry]) { count(entries, 1) }

  /// Subtracts the bytes of the entries of a removed slot.
  mutating func remove(_ entries: [CacheEntry]) { count(entries, -1) }

  /// Subtracts the bytes of the old entries and adds those of the new entries. A body that is in an old and
  /// in a new entry, as after a revalidation, does not count as freed.
  mutating func replace(_ old: [CacheEntry], with new: [CacheEntry]) {
    remove(old)
    add(new)
    for entry in old where Self.sizeClass(of: entry.body) >= Self.firstLargeClass {
      let block = Self.block(of: entry.body)
      if new.contains(where: { Self.block(of: $0.body) == block }) { freed -= entry.body.capacity }
    }
  }

  /// The address of a body's bytes, to recognise a body that two entries share.
  private static func block(of body: [UInt8]) -> UnsafePointer<UInt8>? {
    body.withUnsafeBufferPointer { $0.baseAddress }
  }

  /// The size class of a body: a third of the number of bits of its capacity, at most 8. Class 0 is for less
  /// than 4 bytes, class 1 for less than 32 bytes, and so on.
  private static func sizeClass(of body: [UInt8]) -> Int {
    min((Int.bitWidth - body.capacity.leadingZeroBitCount) / 3, 8)
  }

  /// Updates the estimates after a call to `ProcessHeap.trim`.
  ///
  /// - Parameters:
  ///   - result: the result of the call. The method assumes that the memory of large blocks was returned
  ///     first.
  ///   - begun: when the call began, by the monotonic clock.
  ///   - now: when the call ended, by the monotonic clock.
  mutating func recordTrim(_ result: HeapTrimResult, from begun: MonotonicInstant, to now: MonotonicInstant) {
    // The returned bytes of small blocks. If the result is unknown, all of them count as returned.
    let returned = result.returned.map { max($0 - freed, 0) } ?? .max
    isTrimming = false
    let work = now - begun
    // The pause is at most a day, for example when the process was stopped during the call.
    let pause = min(Double(work.nanoseconds) * (work / Self.briefWork), Self.longestPause)
    pausedUntil = now + .nanoseconds(Int64(pause))
    freed = 0
    for sizeClass in Self.firstLargeClass..<current.count { peaks[sizeClass] = current[sizeClass] }
    let small = (0..<Self.firstLargeClass).reduce(0) { $0 + peaks[$1] - current[$1] }
    // The bytes that were not returned are gaps. They cannot exceed the free bytes of the heap.
    let left = min(max(small - min(returned, small), 0), result.free, maxGaps)
    let share = Double(left) / Double(max(small, 1))
    idle = 0
    for sizeClass in 0..<Self.firstLargeClass {
      peaks[sizeClass] = current[sizeClass] + Int(Double(peaks[sizeClass] - current[sizeClass]) * share)
      idle += peaks[sizeClass] - current[sizeClass]
    }
    gaps = idle
  }

  /// Adds the bytes of entries if `sign` is 1, and subtracts them if it is -1. A body is one block. All other
  /// parts are many small blocks, which count in class 0.
  private mutating func count(_ entries: [CacheEntry], _ sign: Int) {
    if entries.isEmpty { return }
    var rest = MemorySlot.weight(of: entries)
    for entry in entries where !entry.body.isEmpty {
      let body = entry.body.capacity
      rest -= body
      change(Self.sizeClass(of: entry.body), sign * body)
    }
    change(0, sign * rest)
  }

  /// Adds bytes, which may be negative, to a size class, and updates `peaks`, `idle`, `gaps` and `freed`.
  private mutating func change(_ sizeClass: Int, _ bytes: Int) {
    let before = peaks[sizeClass] - current[sizeClass]
    current[sizeClass] += bytes
    if sizeClass >= Self.firstLargeClass, bytes < 0 { freed -= bytes }
    peaks[sizeClass] = max(peaks[sizeClass], current[sizeClass])
    idle += peaks[sizeClass] - current[sizeClass] - before
    gaps = min(gaps, idle)
  }
}
