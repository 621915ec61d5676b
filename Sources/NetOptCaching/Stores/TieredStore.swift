import NetOptCore

/// Memory over disk, and seed packs under both. Entries are written through to the disk when that is worth it; so what
/// memory evicts is still found there, and comes back up when it is asked for.
///
/// Hits in memory neither wait nor change threads. Safe from any thread, event loops included.
package final class TieredStore: Sendable {
  /// What is worth writing to the disk.
  package struct WriteThrough: Hashable, Sendable {
    /// The least time that the entry must stay fresh for; 10 s by default. It does not count when that is not known.
    package var leastAgeLeft: Duration = .seconds(10)
    /// The most bytes of a body; 16 MiB by default.
    package var mostBodyBytes = 16 << 20

    /// Makes it of its defaults.
    package init() {}
  }

  /// The upper tier.
  package let memory: MemoryStore
  /// The lower tier.
  package let disk: DiskCache?
  /// What is shipped with the service, the first pack first.
  package let seeds: [SeedPack]
  private let writeThrough: WriteThrough

  /// Makes a store of its tiers.
  package init(
    memory: MemoryStore, disk: DiskCache? = nil, seeds: [SeedPack] = [],
    writeThrough: WriteThrough = WriteThrough()
  ) {
    self.memory = memory
    self.disk = disk
    self.seeds = seeds
    self.writeThrough = writeThrough
  }

  /// The entries of a key in the highest tier that has some, the newest first, with what seed packs have that is newer.
  ///
  /// - Parameter limit: how long the disk is waited for.
  package func entries(for key: CacheKey, within limit: Duration = DiskCache.patience) async -> [CacheEntry] {
    let found = memory.entries(for: key)
    if seeds.isEmpty, disk == nil || !found.isEmpty { return found }
    let stored = found.isEmpty ? await lower(key, limit) : found
    return await seeded(stored, for: key)
  }

  private func lower(_ key: CacheKey, _ limit: Duration) async -> [CacheEntry] {
    guard let disk else { return [] }
    let mark = memory.mark(of: key)
    let found = await disk.entries(for: key, within: limit)
    if !found.isEmpty { memory.promote(found, for: key, since: mark) }
    return found
  }

  private func seeded(_ stored: [CacheEntry], for key: CacheKey) async -> [CacheEntry] {
    for pack in seeds {
      guard let seed = await pack.entry(for: key) else { continue }
      return stored.contains { !SeedPack.isNewer(seed, than: $0) } ? stored : [seed]
    }
    return stored
  }

  /// Keeps an entry in the place of those that it overlaps, on the disk too when that is worth it.
  ///
  /// - Parameter ageLeft: how long it stays fresh; `nil` when that is not known. What has its declared expiry needs none.
  package func insert(_ entry: CacheEntry, ageLeft: Duration? = nil) {
    // The disk's work is queued first, here as below: whoever finds memory changed looks on the disk after it.
    if isWorthWriting(entry, ageLeft) { disk?.insert(entry) } else { disk?.remove(entry) }
    memory.insert(entry)
  }

  private func isWorthWriting(_ entry: CacheEntry, _ ageLeft: Duration?) -> Bool {
    guard entry.body.count <= writeThrough.mostBodyBytes else { return false }
    let declared = entry.declaredExpiry.map { Duration.milliseconds($0 - entry.received) }
    guard let left = ageLeft ?? declared else { return true }
    return left >= writeThrough.leastAgeLeft
  }

  /// Forgets entries of a key in memory, and all of them on the disk, which may have others than memory: a variant that memory has let go, or one
  /// that another process stored.
  package func remove(_ key: CacheKey, where isMeant: (CacheEntry) -> Bool) {
    disk?.removeAll(for: key)
    memory.remove(key, where: isMeant)
  }

  /// Forgets all entries of a key, in all tiers.
  package func removeAll(for key: CacheKey) {
    disk?.removeAll(for: key)
    memory.removeAll(for: key)
  }

  /// Forgets everything, in all tiers. Seed packs are as they were.
  package func removeAll() {
    disk?.removeAll()
    memory.removeAll()
  }

  /// Brings what waits to the disk, and ends the thread that does so. What is kept in memory stays there.
  package func shutdown() async { await disk?.shutdown() }
}
