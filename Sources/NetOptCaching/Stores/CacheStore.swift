/// A store of cache entries. All methods may be called from any thread. A store that reads or writes files
/// must not be called on an event loop.
package protocol CacheStore: Sendable {
  /// All entries of a key, one for each set of selectors, newest first.
  func entries(for key: CacheKey) -> [CacheEntry]
  /// Inserts an entry, and removes the key's entries that it overlaps (`CacheEntry.overlaps`).
  func insert(_ entry: CacheEntry)
  /// Removes the key's entries that this entry overlaps. A memory store keeps those that were received later.
  func remove(_ entry: CacheEntry)
  /// Removes all entries of a key.
  func removeAll(for key: CacheKey)
  /// Removes all entries.
  func removeAll()
}
