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
  private static let firstLargeClass = 5

  /// Returning memory delays other allocations, because malloc_trim(3) locks each arena of the process. So
  /// the pause after a call grows with the square of the call's duration: 20 ms of work are followed by a
  /// pause of 20 ms, 100 ms by one of 500 ms.
  private static let briefWork = Duration.milliseconds(20)
  /// The longest pause, in nanoseconds.
  private static let longestPause = 86_400e9

  private let maxIdle: Int
  private let maxGaps: Int
  private var current = InlineArray<9, Int>(repeating: 0)
  private var peaks = InlineArray<9, Int>(repeating: 0)
  /// The bytes by which all classes are below their peaks.
  private(set) var idle = 0
  /// The part of `idle` that could not be returned to the system and has not been reused since. It is an
  /// estimate, because only the process-wide change of resident memory is known; so `maxGaps` limits it.
  private(set) var gaps = 0
  /// The bytes of large blocks freed since memory was returned last.
  private var freed = 0
  private var isTrimming = false
  private var pausedUntil: MonotonicInstant?

  /// - Parameters:
  ///   - maxIdle: how many bytes may be idle before memory is returned.
  ///   - maxGaps: the upper limit of `gaps`, in bytes.
  init(maxIdle: Int, maxGaps: Int) {
    self.maxIdle = maxIdle
    self.maxGaps = maxGaps
  }

  /// Whether to return memory to the system now. It is true for one caller only, who must call `recordTrim`
  /// afterwards.
  ///
  /// - Parameter now: returns the time; called only when enough memory is idle.
  mutating func isDue(at now: () -> MonotonicInstant) -> Bool {
    // A freed large block is rarely reused by the next one, which has another size.
    guard !isTrimming, idle - gaps > maxIdle || freed > 2 * maxIdle else { return false }
    if let pausedUntil, now() < pausedUntil { return false }
    isTrimming = true
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
    for entry in old where Self.sizeClass(of: entry.body) >= Self.firstLargeClass {
      let block = Self.block(of: entry.body)
      if new.contains(where: { Self.block(of: $0.body) == block }) { freed -= entry.body.capacity }
    }
  }

  private static func block(of body: [UInt8]) -> UnsafePointer<UInt8>? {
    body.withUnsafeBufferPointer { $0.baseAddress }
  }

  private static func sizeClass(of body: [UInt8]) -> Int {
    min((Int.bitWidth - body.capacity.leadingZeroBitCount) / 3, 8)
  }

  /// Updates the estimates after the heap returned whole pages.
  ///
  /// - Parameters:
  ///   - result: the result. The returned bytes count as those of large blocks first.
  ///   - begun: when the call began.
  ///   - now: when the call ended.
  mutating func recordTrim(_ result: HeapTrimResult, from begun: MonotonicInstant, to now: MonotonicInstant) {
    // Treats an unknown result as if everything was returned.
    let returned = result.returned.map { max($0 - freed, 0) } ?? .max
    isTrimming = false
    let work = now - begun
    // The pause is at most a day, for example when the process was stopped during the call.
    let pause = min(Double(work.nanoseconds) * (work / Self.briefWork), Self.longestPause)
    pausedUntil = now + .nanoseconds(Int64(pause))
    freed = 0
    for sizeClass in Self.firstLargeClass..<current.count { peaks[sizeClass] = current[sizeClass] }
    let small = (0..<Self.firstLargeClass).reduce(0) { $0 + peaks[$1] - current[$1] }
    // Limits the bytes that could not be returned to the free bytes of the heap.
    let left = min(max(small - min(returned, small), 0), result.free, maxGaps)
    let share = Double(left) / Double(max(small, 1))
    idle = 0
    for sizeClass in 0..<Self.firstLargeClass {
      peaks[sizeClass] = current[sizeClass] + Int(Double(peaks[sizeClass] - current[sizeClass]) * share)
      idle += peaks[sizeClass] - current[sizeClass]
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
      change(Self.sizeClass(of: entry.body), sign * body)
    }
    change(0, sign * rest)
  }

  private mutating func change(_ sizeClass: Int, _ bytes: Int) {
    let before = peaks[sizeClass] - current[sizeClass]
    current[sizeClass] += bytes
    if sizeClass >= Self.firstLargeClass, bytes < 0 { freed -= bytes }
    peaks[sizeClass] = max(peaks[sizeClass], current[sizeClass])
    idle += peaks[sizeClass] - current[sizeClass] - before
    gaps = min(gaps, idle)
  }
}
