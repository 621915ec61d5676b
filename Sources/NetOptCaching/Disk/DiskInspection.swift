import Glibc
package import NetOptCore
import NetOptSQLite

/// Shows the content of a disk cache to a person, for the commands of `netopt cache`. Only `clear` changes
/// the cache. Two threads must not use an inspection at the same time.
package final class DiskInspection {
  /// The totals of all entries.
  package struct Usage: Hashable, Sendable {
    /// The number of entries.
    package var entries: Int64
    /// The disk space of all entries in bytes, estimated by `DiskSchema.footprint`. A `DiskStore` evicts
    /// entries when this sum would exceed its `CacheLimits.maxBytes`.
    package var bytes: Int64
    /// The number of entries whose body is in a file of its own instead of the database.
    package var files: Int64
    /// The number of partitions with entries.
    package var partitions: Int64
    /// The sum of `Item.hits` over all entries.
    package var hits: Int64
    /// When the response of the oldest entry was received, in milliseconds since 1970; `nil` for a cache
    /// without entries.
    package var oldest: Int64?
    /// When the response of the newest entry was received, in milliseconds since 1970; `nil` for a cache
    /// without entries.
    package var newest: Int64?
    /// How many of the last 1000 evictions had the reason `EvictionReason.room`.
    package var evictedForRoom: Int64
    /// How many of the last 1000 evictions had the reason `EvictionReason.age`.
    package var evictedForAge: Int64
  }

  /// An entry, without its body and without secrets.
  package struct Item: Hashable, Sendable {
    /// The name of the declared API; without a name, the method, the origin, and the path without its
    /// secrets.
    package var api: String
    /// The parameters of the cache key. The values of parameters whose names suggest secrets are hidden.
    package var parameters: String
    /// The first four bytes of the SHA-256 of the partition's name, in hexadecimal digits, because the name
    /// may be a secret. `nil` for the partition without a name.
    package var partition: String?
    /// The names of the request fields in the entry's `Vary`, in lowercase.
    package var varies: [String]
    /// The status of the response; `nil` when the stored bytes of the entry are damaged.
    package var status: Int?
    /// The size of the body in bytes.
    package var bodyBytes: Int64
    /// The disk space of the entry in bytes, estimated by `DiskSchema.footprint`.
    package var bytes: Int64
    /// The hit count of the entry, which begins at 1. Each look-up on the disk that returns the entry adds 1.
    /// Hits in memory do not count. An entry that replaces another one begins with the count of the replaced
    /// entry. Hits that a process has not yet written to the database are missing.
    package var hits: Int64
    /// When the response was received, in milliseconds since 1970.
    package var received: Int64
    /// How long it took to fetch the response, in microseconds.
    package var fetchMicroseconds: Int64
    /// The version of the resource, for an entry that was stored in `versioned` mode; otherwise `nil`.
    package var resourceVersion: Int64?
  }

  /// The result of a check of the cache.
  package struct Verification: Hashable, Sendable {
    /// The number of entries checked.
    package var entries = 0
    /// The damaged entries: the checksum is wrong, the file of the body is missing or has the wrong length,
    /// or the digest does not belong to the key.
    package var faults: [Fault] = []
    /// The number of orphaned files: body files that belong to no entry, and temporary files whose writer has
    /// ended.
    package var orphans = 0
    /// The faults that SQLite finds in the database, as `PRAGMA integrity_check` describes them.
    package var database: [String] = []
    /// Whether the check found no fault.
    package var isSound: Bool { faults.isEmpty && orphans == 0 && database.isEmpty }

    /// A damaged entry.
    package struct Fault: Hashable, Sendable {
      /// The API name, or the method, origin and path, as in `Item.api`.
      package var api: String
      /// What is wrong with the entry.
      package var reason: String
    }
  }

  private let connection: DiskConnection

  /// Opens the cache of a directory. The cache stays unchanged.
  ///
  /// - Throws: `unreadableFile` or `libraryFailed` when the directory has no cache, or the cache is damaged,
  ///   locked by another process, or from another version of netopt.
  package init(_ directory: String) throws(NetOptError) {
    connection = try Self.translated { () throws(DiskError) in
      let directory = try DiskDirectory(directory, mayCreate: false)
      return try directory.locked(exclusively: false, patience: 5000) { () throws(DiskError) in
        try DiskConnection(directory, mayCreate: false, patience: 5000)
      }
    }
  }

  /// Runs the work, and converts a `DiskError` to a `NetOptError`.
  ///
  /// - Parameter consequence: what a failure means for the cache. It ends the message.
  private static func translated<Result>(
    _ consequence: String = "nothing was changed", _ work: () throws(DiskError) -> Result
  ) throws(NetOptError) -> Result {
    do throws(DiskError) { return try work() } catch { throw error.netOptError(consequence) }
  }

  /// Returns the rows of a query that has no parameter, or one parameter with the value `values[0]`.
  private func read<Result>(
    _ sql: String, _ values: Statement.Value..., row: (borrowing Row) -> Result
  ) throws(NetOptError) -> [Result] {
    try Self.translated { () throws(DiskError) in
      try connection.database { () throws(SQLiteError) in
        let statement = try Statement(sql, in: connection.database)
        return values.isEmpty ? try statement.rows(read: row) : try statement.rows(values[0], read: row)
      }
    }
  }

  /// The totals of all entries.
  package func usage() throws(NetOptError) -> Usage {
    let rows = try read(
      """
      SELECT count(*), coalesce(sum(size), 0), count(file), count(DISTINCT owner), coalesce(sum(hits), 0),
        min(received), max(received), (SELECT count(*) FROM evictions WHERE reason = 'room'),
        (SELECT count(*) FROM evictions WHERE reason = 'age') FROM entries
      """
    ) { row in
      Usage(
        entries: row.integer(0), bytes: row.integer(1), files: row.integer(2), partitions: row.integer(3),
        hits: row.integer(4), oldest: row.optionalInteger(5).map(EntryCoding.bounded),
        newest: row.optionalInteger(6).map(EntryCoding.bounded),
        evictedForRoom: row.integer(7), evictedForAge: row.integer(8))
    }
    return rows[0]
  }

  /// The entries with the most hits, at most `limit` of them.
  package func items(upTo limit: Int) throws(NetOptError) -> [Item] {
    try read(
      """
      SELECT text, owner, selectors, head, length, size, hits, received, cost FROM entries
      ORDER BY hits DESC, received DESC, id LIMIT ?
      """, .integer(Int64(limit))
    ) { row in
      let selectors = row.bytes(2)
      let (api, parameters) = Self.split(row.bytes(0))
      let key = CacheKey(text: "", digest: MD5Digest([UInt8](repeating: 0, count: 16)))
      let entry = EntryCoding.entry(key, selectors: selectors, head: row.bytes(3), body: [])
      return Item(
        api: Self.shown(api), parameters: SecretParameters.hidden(inQuery: HTTPURL.start(of: parameters)),
        partition: Self.partition(row.bytes(1)),
        varies: (EntryCoding.selectors(selectors) ?? []).map(\.name), status: entry?.status,
        bodyBytes: row.integer(4), bytes: row.integer(5), hits: row.integer(6),
        received: EntryCoding.bounded(row.integer(7)), fetchMicroseconds: max(row.integer(8), 0),
        resourceVersion: entry?.resourceVersion)
    }
  }

  /// Reads all entries and files, and checks their checksums.
  package func verify() throws(NetOptError) -> Verification {
    var result = Verification()
    result.database = try read("PRAGMA integrity_check") { $0.text(0) ?? "" }.filter { $0 != "ok" }
    let ids = try read("SELECT id FROM entries ORDER BY id") { $0.integer(0) }
    for id in ids {
      // Another process may have removed the entry meanwhile.
      guard var (storedKey, entry) = try row(id) else { continue }
      result.entries += 1
      while let reason = fault(of: entry, for: storedKey) {
        // Another process may have removed or replaced the entry after the row was read, and then the file
        // of the body is missing. So the entry counts as damaged only if a second read finds it unchanged.
        guard let (again, same) = try row(id) else { break }
        guard same.file != entry.file || same.checksum != entry.checksum else {
          result.faults.append(.init(api: Self.shown(Self.split(storedKey.text).api), reason: reason))
          break
        }
        (storedKey, entry) = (again, same)
      }
    }
    result.orphans = try orphans().count
    return result
  }

  /// The entry with this id in the database; `nil` when there is none.
  private func row(
    _ id: Int64
  ) throws(NetOptError) -> (storedKey: DiskConnection.StoredKey, entry: DiskConnection.StoredEntry)? {
    try read(
      "SELECT digest, owner, text, selectors, head, checksum, file, length, body FROM entries WHERE id = ?",
      .integer(id)
    ) { row in
      (
        DiskConnection.StoredKey(digest: row.bytes(0), owner: row.bytes(1), text: row.bytes(2)),
        DiskConnection.StoredEntry(
          id: id, selectors: row.bytes(3), head: row.bytes(4), checksum: row.bytes(5), file: row.text(6),
          length: Int(clamping: row.integer(7)), body: row.bytes(8))
      )
    }.first
  }

  /// The names of the orphaned files (`DiskConnection.orphans`). A process that removes an entry removes the
  /// file a moment later. So a file counts only if five checks within 0.2 s all find that it is orphaned.
  private func orphans() throws(NetOptError) -> Set<String> {
    var found: Set<String>?
    for check in 0..<5 {
      if check > 0 { usleep(50_000) }
      let names = try Self.translated { () throws(DiskError) in
        try connection.transaction { () throws(DiskError) -> [String] in try connection.orphans() }
      }
      found = found?.intersection(names) ?? Set(names)
      if found?.isEmpty ?? true { break }
    }
    return found ?? []
  }

  /// Describes what is wrong with an entry; `nil` for an entry without a fault.
  private func fault(
    of entry: DiskConnection.StoredEntry, for storedKey: DiskConnection.StoredKey
  ) -> String? {
    if let file = entry.file, connection.files.read(file, length: entry.length) == nil {
      return "the file of its body is missing or has the wrong length"
    }
    let key = CacheKey(text: "", digest: MD5Digest([UInt8](repeating: 0, count: 16)))
    if connection.entry(key, storedKey, entry) == nil { return "its checksum is wrong" }
    return CacheKey.digest(of: storedKey.text)?.bytes == storedKey.digest
      ? nil : "the digest of its key is wrong"
  }

  /// Removes all entries.
  ///
  /// - Returns: the number of the removed entries, and their disk space in bytes as in `Usage.bytes`.
  package func clear() throws(NetOptError) -> (entries: Int64, bytes: Int64) {
    let removed = try Self.translated { () throws(DiskError) in try connection.removeEntries(counts: true) }
    try Self.translated("the entries are removed, but the disk space of the database is not free") {
      () throws(DiskError) in try connection.freePages()
    }
    return removed
  }

  /// Splits the text of a key at its first NUL (`CacheKey.text`).
  private static func split(_ text: [UInt8]) -> (api: String, parameters: String) {
    let parts = text.split(separator: 0, maxSplits: 1, omittingEmptySubsequences: false)
    let texts = parts.map { SlowText.withoutLongRuns(String(decoding: $0, as: UTF8.self)) }
    return (texts.first ?? "", texts.count > 1 ? texts[1] : "")
  }

  /// Removes the secrets from the URL in a key without an API name, which has the form "GET https://…". The
  /// name of a declared API is returned unchanged.
  private static func shown(_ api: String) -> String {
    guard let space = api.firstIndex(of: " ") else { return api }
    let rest = api[api.index(after: space)...]
    guard rest.utf8.firstRange(ofBytes: "://") != nil else { return api }
    return api[...space] + HTTPURL.shown(given: HTTPURL.start(of: String(rest)))
  }

  /// The text for `Item.partition`. `owner` is the SHA-256 of the partition's name (`EntryCoding.owner`).
  private static func partition(_ owner: [UInt8]) -> String? {
    owner.isEmpty ? nil : Hex.text(Array(owner.prefix(4)))
  }
}
