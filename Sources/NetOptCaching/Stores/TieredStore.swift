import NetOptCore

/// A store of three tiers: memory, then disk, then seed packs. A look-up asks the disk only if memory has no
/// entry of the key. It always asks the seed packs, because a seed may be newer than the stored entries.
///
/// The store inserts each entry into memory, and also writes it to the disk if the entry meets the conditions
/// of `WriteThrough`. So entries that memory evicts are still on the disk. They return to memory when they
/// are requested.
///
/// A hit in memory does not wait, unless a seed pack has the key and has not read its file yet: the pack reads
/// the file on a thread of its own. Safe from any thread, including event loops.
package final class TieredStore: Sendable {
  /// The conditions for writing an entry to the disk.
  package struct WriteThrough: Hashable, Sendable {
    /// The minimum time for which the entry must still be fresh; 10 s by default. If it is unknown how long
    /// the entry is fresh, the entry meets this condition.
    package var shortestLifetimeLeft: Duration = .seconds(10)
    /// The maximum size of the body in bytes; 16 MiB by default.
    package var mostBodyBytes = 16 << 20

    /// Makes the default conditions.
    package init() {}
  }

  /// The memory tier.
  package let memory: MemoryStore
  /// The disk tier; `nil` for a store without a disk cache.
  package let disk: DiskCache?
  /// The seed packs. The first pack that has a key answers for this key.
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

  /// The entries of a key, newest first, from memory or, if memory has none, from the disk. If a seed is
  /// newer than all of them, the result is only the seed.
  ///
  /// - Parameter limit: how long to wait for the disk. After this time, the disk counts as having no entry.
  package func entries(for key: CacheKey, within limit: Duration = DiskCache.patience) async -> [CacheEntry] {
    let found = memory.entries(for: key)
    if seeds.isEmpty, disk == nil || !found.isEmpty { return found }
    let stored = found.isEmpty ? await entriesOnDisk(key, limit) : found
    return await seeded(stored, for: key)
  }

  /// The entries of a key on the disk. They also return to memory, unless memory has changed during the
  /// look-up.
  private func entriesOnDisk(_ key: CacheKey, _ limit: Duration) async -> [CacheEntry] {
    guard let disk else { return [] }
    let changeCount = memory.changeCount(of: key)
    let found = await disk.entries(for: key, within: limit)
    if !found.isEmpty { memory.promote(found, for: key, since: changeCount) }
    return found
  }

  /// The stored entries, or a seed that is newer than all of them.
  private func seeded(_ stored: [CacheEntry], for key: CacheKey) async -> [CacheEntry] {
    for pack in seeds {
      guard let seed = await pack.entry(for: key) else { continue }
      return stored.contains { !SeedPack.isNewer(seed, than: $0) } ? stored : [seed]
    }
    return stored
  }

  /// Inserts an entry into memory, and writes it to the disk too if it meets `WriteThrough`. Both tiers
  /// remove the stored entries that it overlaps (`CacheEntry.overlaps`), even if the disk does not store the
  /// entry.
  ///
  /// - Parameter ageLeft: how long the entry is still fresh. If it is `nil`, the time from `received` until
  ///   `declaredExpiry` of the entry is used. If the entry has no `declaredExpiry` either, the time is
  ///   unknown.
  package func insert(_ entry: CacheEntry, ageLeft: Duration? = nil) {
    // Queues the work of the disk before the change in memory, as the methods below do. So a caller that sees
    // the change in memory, and then reads the disk, reads it after this work.
    if isWorthWriting(entry, ageLeft) { disk?.insert(entry) } else { disk?.remove(entry) }
    memory.insert(entry)
  }

  /// Whether an entry meets the conditions of `WriteThrough`.
  private func isWorthWriting(_ entry: CacheEntry, _ ageLeft: Duration?) -> Bool {
    guard entry.body.count <= writeThrough.mostBodyBytes else { return false }
    let declared = entry.declaredExpiry.map { Duration.milliseconds($0 - entry.received) }
    guard let left = ageLeft ?? declared else { return true }
    return left >= writeThrough.shortestLifetimeLeft
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

  /// Removes the entries of a selection from memory and disk. Seed packs do not change. Waits for the disk
  /// without a time limit, or until `shutdown`.
  ///
  /// The entries leave memory first, so that a slow disk does not keep them there. But until the disk has
  /// removed them, a look-up may read and promote them. So the memory removes them again after the disk. This
  /// also keeps a look-up from promoting an entry that it read before.
  package func remove(_ selection: CacheSelection) async {
    removeFromMemory(selection)
    guard let disk else { return }
    await disk.remove(selection)
    removeFromMemory(selection)
  }

  private func removeFromMemory(_ selection: CacheSelection) {
    if selection == .everything {
      memory.removeAll()
    } else {
      memory.remove { selection.contains($0.key, $0.resource) }
    }
  }

  /// Performs the queued work of the disk and ends the disk's thread. After 5 s, it drops the work that has not
  /// begun. Entries in memory stay.
  package func shutdown() async { await disk?.shutdown() }
}
