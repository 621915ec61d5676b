/// A place where entries are kept. Its calls may come from any thread; a store that reads or writes files is called on no
/// event loop.
package protocol CacheStore: Sendable {
  /// All entries of a key, one for each set of selectors, the newest first.
  func entries(for key: CacheKey) -> [CacheEntry]
  /// Keeps an entry, in the place of the key's entry with the same selectors.
  func insert(_ entry: CacheEntry)
  /// Forgets the key's entry with the entry's selectors. Memory keeps a newer one.
  func remove(_ entry: CacheEntry)
  /// Forgets all entries of a key.
  func removeAll(for key: CacheKey)
  /// Forgets everything.
  func removeAll()
}
