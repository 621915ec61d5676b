import NetOptCore

/// A memory tier above a disk tier, with seed packs below both. The store writes an entry through to the disk
/// if the entry meets `WriteThrough`. So entries that memory evicts are still on the disk, and return to
/// memory when they are requested.
///
/// A hit in memory does not wait and does not change threads. Safe from any thread, including event loops.
package final class TieredStore: Sendable {
  /// The conditions for writing an entry to the disk.
  package struct WriteThrough: Hashable, Sendable {
    /// The minimum time that the entry must stay fresh; 10 s by default. Ignored when that time is unknown.
    package var leastAgeLeft: Duration = .seconds(10)
    /// The maximum size of a body in bytes; 16 MiB by default.
    package var mostBodyBytes = 16 << 20

    /// Makes the default conditions.
    package init() {}
  }

  /// The memory tier.
  package let memory: MemoryStore
  /// The disk tier.
  package let disk: DiskCache?
  /// The seed packs shipped with the service. Earlier packs take precedence.
  package let seeds: [SeedPack]
  private let writeThrough: WriteThrough

  /// Makes a store from its tiers.
  package init(
    memory: MemoryStore, disk: DiskCache? = nil, seeds: [SeedPack] = [],
    writeThrough: WriteThrough = WriteThrough()
  ) {
    self.memory = memory
    self.disk = disk
    self.seeds = seeds
    self.writeThrough = writeThrough
  }

  /// The entries of a key, newest first, from memory or, if memory has none, from the disk. A newer seed
  /// replaces them.
  ///
  /// - Parameter limit: how long to wait for the disk.
  package func entries(for key: CacheKey, within limit: Duration = DiskCache.patience) async -> [CacheEntry] {
    let found = memory.entries(for: key)
    if seeds.isEmpty, disk == nil || !found.isEmpty { return found }
    let stored = found.isEmpty ? await entriesOnDisk(key, limit) : found
    return await seeded(stored, for: key)
  }

  private func entriesOnDisk(_ key: CacheKey, _ limit: Duration) async -> [CacheEntry] {
    guard let disk else { return [] }
    let changeCount = memory.changeCount(of: key)
    let found = await disk.entries(for: key, within: limit)
    if !found.isEmpty { memory.promote(found, for: key, since: changeCount) }
    return found
  }

  private func seeded(_ stored: [CacheEntry], for key: CacheKey) async -> [CacheEntry] {
    for pack in seeds {
      guard let seed = await pack.entry(for: key) else { continue }
      return stored.contains { !SeedPack.isNewer(seed, than: $0) } ? stored : [seed]
    }
    return stored
  }

  /// Inserts an entry into memory and removes the entries that it overlaps. The entry also goes to the disk
  /// if it meets `WriteThrough`.
  ///
  /// - Parameter ageLeft: how long the entry stays fresh; `nil` when unknown. The default for an entry with a
  ///   declared expiry is the time until that expiry.
  package func insert(_ entry: CacheEntry, ageLeft: Duration? = nil) {
    // Queues the work of the disk first, as the methods below do. A caller that sees the change in memory
    // reads the disk after that work.
    if isWorthWriting(entry, ageLeft) { disk?.insert(entry) } else { disk?.remove(entry) }
    memory.insert(entry)
  }

  private func isWorthWriting(_ entry: CacheEntry, _ ageLeft: Duration?) -> Bool {
    guard entry.body.count <= writeThrough.mostBodyBytes else { return false }
    let declared = entry.declaredExpiry.map { Duration.milliseconds($0 - entry.received) }
    guard let left = ageLeft ?? declared else { return true }
    return left >= writeThrough.leastAgeLeft
  }

  /// Removes the entries of a key that match the predicate from memory, and all entries of the key from the
  /// disk. The disk may have entries that memory lacks: variants that memory evicted, or entries that another
  /// process stored.
  package func remove(_ key: CacheKey, where predicate: (CacheEntry) -> Bool) {
    disk?.removeAll(for: key)
    memory.remove(key, where: predicate)
  }

  /// Removes all entries of a key from memory and disk.
  package func removeAll(for key: CacheKey) {
    disk?.removeAll(for: key)
    memory.removeAll(for: key)
  }

  /// Removes all entries from memory and disk. Seed packs do not change.
  package func removeAll() {
    disk?.removeAll()
    memory.removeAll()
  }

  /// Writes the queued entries to the disk and ends the disk's thread. Entries in memory stay.
  package func shutdown() async { await disk?.shutdown() }
}
