import NetOptCore
import NetOptCrypto
import NetOptSQLite

extension DiskConnection {
  /// A key in the form in which the database stores it. The database finds rows by `digest` and `owner`, for
  /// which it has an index. Then it compares `text`.
  struct StoredKey {
    /// The digest of the key (`CacheKey.digest`). Different keys may have the same digest.
    let digest: [UInt8]
    /// The SHA-256 of the partition's name; empty for the partition without a name.
    let owner: [UInt8]
    /// The key's text in UTF-8.
    let text: [UInt8]

    init(_ key: CacheKey) throws(DiskError) {
      digest = key.digest.bytes
      do throws(CryptoError) { owner = try EntryCoding.owner(key.partition) } catch {
        throw .unfit("\(error)")
      }
      text = Array(key.text.utf8)
    }

    init(digest: [UInt8], owner: [UInt8], text: [UInt8]) {
      self.digest = digest
      self.owner = owner
      self.text = text
    }
  }

  /// The columns of an entry's row, except those of its key.
  struct StoredEntry {
    /// The row's number in the database. SQLite reuses the numbers of deleted rows.
    let id: Int64
    /// The encoded selectors (`EntryCoding.bytes`).
    let selectors: [UInt8]
    /// The encoded status, times, version and fields.
    let head: [UInt8]
    /// The checksum over the owner, the text, the selectors, the head and the body (`EntryCoding.checksum`).
    let checksum: [UInt8]
    /// The name of the file with the body (`BodyFiles`); `nil` when the body is in the row.
    let file: String?
    /// The length of the body in bytes, wherever it is stored.
    let length: Int
    /// The body; empty when it is in a file.
    let body: [UInt8]
  }

  /// The entries of a key. Entries that fail their checksum are left out, and removed if `mayChange` is set.
  ///
  /// - Parameter oldest: a time in milliseconds since 1970. Entries that were received before it are left
  ///   out.
  func entries(for key: CacheKey, since oldest: Int64) throws(DiskError) -> [CacheEntry] {
    let storedKey = try StoredKey(key)
    let rows = try database { () throws(SQLiteError) in
      try statements.find.rows(
        .blob(storedKey.digest), .blob(storedKey.owner), .blob(storedKey.text), .integer(oldest)
      ) { row in
        StoredEntry(
          id: row.integer(0), selectors: row.bytes(1), head: row.bytes(2), checksum: row.bytes(3),
          file: row.text(4), length: Int(row.integer(5)), body: row.bytes(6))
      }
    }
    var entries: [CacheEntry] = []
    for row in rows {
      if let entry = entry(key, storedKey, row) {
        entries.append(entry)
        if mayChange { pendingHits[row.id, default: 0] += 1 }
      } else if mayChange {
        try deleteDamaged(row)
      }
    }
    return entries
  }

  /// The entry of a row; `nil` when the row or its file is damaged: its checksum or the length of its body is
  /// wrong.
  func entry(_ key: CacheKey, _ storedKey: StoredKey, _ row: StoredEntry) -> CacheEntry? {
    var body = row.body
    if let file = row.file {
      guard let read = files.read(file, length: row.length) else { return nil }
      body = read
    }
    guard body.count == row.length,
      let checksum = try? EntryCoding.checksum(
        owner: storedKey.owner, text: storedKey.text, selectors: row.selectors, head: row.head, body: body),
      checksum == row.checksum
    else { return nil }
    return EntryCoding.entry(key, selectors: row.selectors, head: row.head, body: body)
  }

  /// Removes a damaged row and its file. Another process may already have removed the row and given its id to
  /// a new row. The statement therefore compares the checksum, which is different in the new row, so that the
  /// new row stays.
  func deleteDamaged(_ row: StoredEntry) throws(DiskError) {
    try database { () throws(SQLiteError) in
      try statements.deleteDamaged.run(.integer(row.id), .blob(row.checksum))
    }
    if let file = row.file { files.remove(file) }
  }

  /// Inserts an entry, removes the entries that it overlaps, and evicts other entries until there is room. An
  /// entry larger than `mostBytesOfDiskEntry` is not inserted, but the entries that it overlaps are removed.
  ///
  /// - Parameters:
  ///   - limits: the limits of the store.
  ///   - now: the date in milliseconds since 1970. It is recorded with evictions. Entries of the key with a
  ///     later date of receipt are removed: the clock has been set back since they were stored.
  func insert(_ entry: CacheEntry, _ limits: CacheLimits, now: Int64) throws(DiskError) {
    let storedKey = try StoredKey(entry.key)
    /// The encoded selectors (`EntryCoding.bytes`).
    let selectors = EntryCoding.bytes(of: entry.selectors)
    let head = EntryCoding.head(of: entry)
    let checksum: [UInt8]
    do throws(CryptoError) {
      checksum = try EntryCoding.checksum(
        owner: storedKey.owner, text: storedKey.text, selectors: selectors, head: head, body: entry.body)
    } catch { throw .unfit("\(error)") }
    let isInline = entry.body.count <= Self.mostInlineBytes
    let texts = storedKey.text.count + selectors.count + head.count + storedKey.owner.count
    let size = DiskSchema.footprint(
      row: texts + (isInline ? entry.body.count : 0), file: isInline ? nil : entry.body.count)
    guard size <= limits.mostBytesOfDiskEntry, limits.maxEntries ?? 1 > 0 else {
      return try remove(entry)
    }
    func store(_ file: String?, _ publish: () throws(DiskError) -> Void) throws(DiskError) {
      let removed = try transaction { () throws(DiskError) in
        try database { () throws(SQLiteError) in try flushHits() }
        let old = try removeRows(storedKey) { overlaps(entry, $0) || $1 > now }
        let excess = try removeRows(storedKey, beyond: Self.mostVariants - 1)
        let removed = old.files + excess + (try makeRoom(limits, for: size, entries: 1, now: now))
        try publish()
        try database { () throws(SQLiteError) in
          let cost = max(entry.fetchMicroseconds, 1)
          // The new entry inherits the hits of the entry that it replaces.
          let hits = max(old.hits, 1)
          let priority = try totals().clock + Double(hits) * Double(cost) / Double(size)
          try statements.insert.run(
            .blob(storedKey.digest), .blob(storedKey.owner), .blob(storedKey.text), .blob(selectors),
            .optional(entry.resource), .integer(entry.received), .integer(Int64(size)), .integer(cost),
            .integer(hits), .real(priority),
            .integer(Int64(entry.body.count)),
            .optional(file), .blob(checksum), .blob(head), file == nil ? .blob(entry.body) : .null)
        }
        return removed
      }
      for file in removed { files.remove(file) }
    }
    if isInline { return try store(nil) { () throws(DiskError) in } }
    let temporaryFile = try files.write(entry.body)
    do throws(DiskError) {
      try store(temporaryFile.name) { () throws(DiskError) in try files.publish(temporaryFile) }
    } catch {
      files.discard(temporaryFile)
      throw error
    }
  }

  /// Whether the key has entries, including entries that are too old for a look-up.
  func has(_ key: CacheKey) throws(DiskError) -> Bool {
    let storedKey = try StoredKey(key)
    return try database { () throws(SQLiteError) in try !variants(storedKey).isEmpty }
  }

  /// Removes the stored entries that an entry overlaps (`CacheEntry.overlaps`).
  func remove(_ entry: CacheEntry) throws(DiskError) {
    try remove(entry.key) { overlaps(entry, $0) }
  }

  /// Whether an entry overlaps the stored entry with these encoded selectors.
  private func overlaps(_ entry: CacheEntry, _ selectors: [UInt8]) -> Bool {
    EntryCoding.selectors(selectors).map(entry.overlaps) ?? false
  }

  /// Removes the entries of a key whose encoded selectors match the predicate.
  func remove(_ key: CacheKey, where predicate: ([UInt8]) -> Bool) throws(DiskError) {
    let storedKey = try StoredKey(key)
    // Usually the key has no rows. A read takes no lock, while a transaction waits for other writers.
    guard try has(key) else { return }
    let files = try transaction { () throws(DiskError) in
      try removeRows(storedKey) { selectors, _ in predicate(selectors) }.files
    }
    for file in files { self.files.remove(file) }
  }

  /// Removes all entries of several keys in one transaction.
  func remove(_ keys: Set<CacheKey>) throws(DiskError) {
    let files = try transaction { () throws(DiskError) in
      var files: [String] = []
      for key in keys { files += try removeRows(try StoredKey(key)) { _, _ in true }.files }
      return files
    }
    for file in files { self.files.remove(file) }
  }

  /// A row of a key with the columns that decide about its removal. A key has one row for each variant of its
  /// response.
  private struct Variant {
    /// The row's number in the database.
    let id: Int64
    let selectors: [UInt8]
    /// When the response was received, in milliseconds since 1970.
    let received: Int64
    /// The name of the file with the body; `nil` when the body is in the row.
    let file: String?
    /// The hits that the database has for the entry, without those in `pendingHits`. A new entry begins with
    /// the hits of the entry that it replaces, at least 1.
    let hits: Int64
  }

  /// The rows of a key, the last received first. Throws when there are more than `mostVariants`: the database
  /// is then damaged.
  private func variants(_ storedKey: StoredKey) throws(SQLiteError) -> [Variant] {
    let rows = try statements.variants.rows(
      .blob(storedKey.digest), .blob(storedKey.owner), .blob(storedKey.text)
    ) {
      Variant(
        id: $0.integer(0), selectors: $0.bytes(1), received: $0.integer(2), file: $0.text(3),
        hits: $0.integer(4))
    }
    guard rows.count <= Self.mostVariants else {
      throw SQLiteError(corrupt: database.path, "a key has more than \(Self.mostVariants) entries")
    }
    return rows
  }

  /// Removes the oldest rows of a key until at most `count` are left. Call it in a transaction.
  ///
  /// - Returns: the names of the files of the removed rows. Remove these files after the transaction.
  private func removeRows(_ storedKey: StoredKey, beyond count: Int) throws(DiskError) -> [String] {
    try database { () throws(SQLiteError) in
      var files: [String] = []
      for row in try variants(storedKey).dropFirst(count) {
        try statements.delete.run(.integer(row.id))
        if let file = row.file { files.append(file) }
      }
      return files
    }
  }

  /// Removes the rows of a key that match the predicate. Call it in a transaction.
  ///
  /// - Returns: the names of the files of the removed rows, to be removed after the transaction; and the
  ///   largest number of hits of a removed row.
  private func removeRows(
    _ storedKey: StoredKey, where predicate: (_ selectors: [UInt8], _ received: Int64) -> Bool
  ) throws(DiskError) -> (files: [String], hits: Int64) {
    try database { () throws(SQLiteError) in
      var files: [String] = []
      var hits: Int64 = 0
      for row in try variants(storedKey) where predicate(row.selectors, row.received) {
        try statements.delete.run(.integer(row.id))
        if let file = row.file { files.append(file) }
        hits = max(hits, row.hits)
      }
      return (files, hits)
    }
  }

  /// Removes all entries and the record of evictions, and returns the free pages to the file system.
  func removeAll() throws(DiskError) {
    _ = try removeEntries()
    try freePages()
  }

  /// Removes all entries and the record of evictions.
  ///
  /// - Parameter counts: whether to count the entries, which reads all of them.
  /// - Returns: the number of the removed entries, and the sum of their sizes; zeros without `counts`.
  func removeEntries(counts: Bool = false) throws(DiskError) -> (entries: Int64, bytes: Int64) {
    pendingHits = [:]
    let (removed, orphans) = try transaction { () throws(DiskError) in
      let removed = try database { () throws(SQLiteError) in
        // Not from `totals`: a cache whose totals are damaged can be cleared too.
        let removed =
          try counts
          ? Statement("SELECT count(*), coalesce(sum(size), 0) FROM entries", in: database)
            .rows { ($0.integer(0), $0.integer(1)) }[0] : (0, 0)
        // Without a condition SQLite would free the table's pages in one instruction, which cannot be
        // interrupted.
        try database.execute(
          "DELETE FROM entries; DELETE FROM evictions WHERE true; UPDATE totals SET clock = 0")
        return removed
      }
      return (removed, try self.orphans())
    }
    files.sweep(orphans)
    return removed
  }

  /// Returns the free pages of the database to the file system.
  func freePages() throws(DiskError) {
    try database { () throws(SQLiteError) in try database.execute("PRAGMA incremental_vacuum") }
  }
}

extension CacheLimits {
  /// The maximum size of an entry on disk, in bytes: a tenth of the store's limit. A larger entry is not
  /// worth the other entries that it would evict.
  var mostBytesOfDiskEntry: Int { max(maxBytes, 0) / 10 }
}
