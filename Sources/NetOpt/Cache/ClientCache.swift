import NetOptCaching
public import NetOptCore

/// The response cache of a client, for the program (`NetOptClient.cache`). Safe from any task.
///
/// ```swift
/// try await client.cache?.remove(HTTPURL("https://api.example.com/items?q=lamp"))
/// await client.cache?.removeAll(name: "shop/live/items")
/// ```
///
/// After a removal has returned, no call of this client that begins later gets a response that was stored, or
/// whose fetch began, before the removal. A fetch that runs meanwhile still answers the calls that wait for
/// it. Its response is not stored.
///
/// A removal waits until the disk cache has removed the entries. There is no time limit: if the disk hangs,
/// the removal waits until the disk answers or the client shuts down. The entries leave memory at once.
/// While a removal runs, the cache stores no response that the removal concerns. If the disk cache cannot
/// remove the entries now, it removes them before this client reads the disk again. If the process ends
/// before that, the entries stay on the disk. Other processes with the same directory keep the entries that
/// they have in memory, and may store responses that they have requested before. Seed packs do not change: a
/// response of a seed pack can answer the next call.
///
/// The cancellation of the task does not end a removal. After `NetOptClient.shutdown()` a removal changes
/// only the memory.
public struct ClientCache: Sendable {
  private let cache: ResponseCache
  /// Counts the outcomes of calls.
  private let metrics: CallMetrics

  init(_ cache: ResponseCache, _ metrics: CallMetrics) {
    self.cache = cache
    self.metrics = metrics
  }

  /// Forgets the stored responses of a URL, in all partitions, methods and variants. Responses of other URLs
  /// stay.
  ///
  /// In the mode `http`, the URL must have the same query, byte for byte. In the other modes, the order of the
  /// parameters does not matter. In the mode `versioned`, all versions of the resource are forgotten. The URL
  /// does not say which parameter is the version, so each parameter whose value is an integer counts as one.
  ///
  /// A response that was stored under a declared name belongs to the URL that it was fetched from. If one name
  /// stands for several paths, use `removeAll(name:)`.
  ///
  /// - Parameter url: the URL. A fragment does not count.
  public func remove(_ url: HTTPURL) async {
    // Without MD5 there are no keys, and nothing is stored.
    guard let selection = try? CacheSelection(url: url) else { return }
    await cache.remove(selection)
  }

  /// Forgets the stored responses of an API, at all origins and in all partitions and variants.
  ///
  /// - Parameter name: the declared name of the API (`CacheOptions.Declaration.name`,
  ///   `CacheOptions.Versions.name`). The comparison is byte for byte.
  public func removeAll(name: String) async { await cache.remove(.name(name)) }

  /// Forgets all stored responses. If other processes use the directory, their responses on the disk are
  /// forgotten too.
  public func removeAll() async { await cache.remove(.everything) }

  /// The content and the use of the cache now. Reads the totals of the disk cache, and waits for at most 1 s.
  public var stats: CacheStats {
    get async {
      let disk = await cache.store.disk?.usage()
      let memory = cache.store.memory.usage
      let outcomes = metrics.current.cache
      return CacheStats(
        memoryEntries: memory.entries, memoryBytes: memory.bytes,
        memoryMaxBytes: cache.store.memory.limits.maxBytes, memoryEvicted: cache.store.memory.evicted,
        diskEntries: disk.map { Int($0.entries) }, diskBytes: disk.map { Int($0.bytes) },
        diskMaxBytes: cache.store.disk?.store.limits.maxBytes,
        diskEvictedForRoom: disk.map { Int($0.evictedForRoom) },
        diskEvictedForAge: disk.map { Int($0.evictedForAge) },
        hits: outcomes.hit, stale: outcomes.stale, revalidated: outcomes.revalidated, misses: outcomes.miss,
        insertions: cache.insertionCount.load(ordering: .relaxed))
    }
  }
}

/// The content and the use of a client's cache at one moment (`ClientCache.stats`). The responses of seed
/// packs are not among the entries.
public struct CacheStats: Hashable, Sendable {
  /// The number of entries in memory. A resource has one entry for each variant.
  public let memoryEntries: Int
  /// The memory in use, in bytes, with keys, fields and tables.
  public let memoryBytes: Int
  /// The limit of `memoryBytes` (`ClientConfiguration.Cache.maxBytes`).
  public let memoryMaxBytes: Int
  /// The number of entries that were evicted from memory since the client was made, for space or for age. Also
  /// counts the new entries that memory refused because they were too large for its queues.
  public let memoryEvicted: Int
  /// The number of entries on the disk, of all processes. `nil` without a disk cache, and when the disk cannot
  /// be read now.
  public let diskEntries: Int?
  /// The estimated disk space of the entries, in bytes; `nil` as for `diskEntries`.
  public let diskBytes: Int?
  /// The limit of `diskBytes` (`ClientConfiguration.Cache.maxDiskBytes`); `nil` without a disk cache.
  public let diskMaxBytes: Int?
  /// How many of the last 1,000 evictions from the disk, by all processes, were for lack of space; `nil` as
  /// for `diskEntries`.
  public let diskEvictedForRoom: Int?
  /// How many of the last 1,000 evictions from the disk, by all processes, were for age; `nil` as for
  /// `diskEntries`.
  public let diskEvictedForAge: Int?
  /// The number of calls since the client was made that got a fresh entry. A call counts when its body has
  /// ended. The outcomes are those of `NetOptResponse.cacheStatus`.
  public let hits: Int
  /// The number of calls that got a stale entry.
  public let stale: Int
  /// The number of calls that got an entry that the origin had confirmed.
  public let revalidated: Int
  /// The number of calls that used the cache and got no entry.
  public let misses: Int
  /// The number of responses that this client has stored. A response that the origin confirmed and that was
  /// stored again counts again.
  public let insertions: Int
}
