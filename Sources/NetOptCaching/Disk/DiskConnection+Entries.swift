import NetOptCore
import NetOptCrypto
import NetOptSQLite

extension DiskConnection {
  /// A key in the form that the database stores.
  struct StoredKey {
    let digest: [UInt8]
    let owner: [UInt8]
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

  /// The columns of an entry's row.
  struct StoredEntry {
    let id: Int64
    let selectors: [UInt8]
    let head: [UInt8]
    let checksum: [UInt8]
    let file: String?
    let length: Int
    let body: [UInt8]
  }

  /// The entries of a key that were received since `oldest`, in milliseconds since 1970. Removes entries that
  /// fail their checksum, if `changes` allows it.
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
        if changes { pendingHits[row.id, default: 0] += 1 }
      } else if changes {
        try deleteDamaged(row)
      }
    }
    return entries
  }

  /// The entry of a row; `nil` when the row or its file is not as it was stored.
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

  /// Removes a damaged row and its file. Meanwhile another process may have removed the row and reused its id
  /// for a new row; the checksum keeps the new row from being removed.
  func deleteDamaged(_ row: StoredEntry) throws(DiskError) {
    try database { () throws(SQLiteError) in
      try statements.deleteDamaged.run(.integer(row.id), .blob(row.checksum))
    }
    if let file = row.file { files.remove(file) }
  }

  /// Inserts an entry, removes the entries that it overlaps, and evicts others until there is room.
  ///
  /// - Parameters:
  ///   - limits: the limits of the store.
  ///   - now: the date in milliseconds since 1970, recorded with evictions. Entries of the key that were
  ///     received after it, before the clock was set back, are removed.
  func insert(_ entry: CacheEntry, _ limits: CacheLimits, now: Int64) throws(DiskError) {
    let storedKey = try StoredKey(entry.key)
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
            .integer(entry.received),
            .integer(Int64(size)), .integer(cost), .integer(hits), .real(priority),
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

  /// Whether the key has entries.
  func has(_ key: CacheKey) throws(DiskError) -> Bool {
    let storedKey = try StoredKey(key)
    return try database { () throws(SQLiteError) in try !variants(storedKey).isEmpty }
  }

  /// Removes the entries that an entry overlaps.
  func remove(_ entry: CacheEntry) throws(DiskError) {
    try remove(entry.key) { overlaps(entry, $0) }
  }

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

  private struct Variant {
    let id: Int64
    let selectors: [UInt8]
    let received: Int64
    let file: String?
    let hits: Int64
  }

  /// The rows of a key, newest first.
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

  /// Removes the oldest rows of a key until at most `count` are left.
  ///
  /// - Returns: the names of their files.
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

  /// - Returns: the names of the files of the removed rows, and the hits of the removed row with the most
  ///   hits.
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

  /// Removes all entries.
  func removeAll() throws(DiskError) {
    pendingHits = [:]
    let orphans = try transaction { () throws(DiskError) in
      try database { () throws(SQLiteError) in
        // Without a condition SQLite would free the table's pages in one instruction, which cannot be
        // interrupted.
        try database.execute(
          "DELETE FROM entries; DELETE FROM evictions WHERE true; UPDATE totals SET clock = 0")
      }
      return try self.orphans()
    }
    files.sweep(orphans)
    try database { () throws(SQLiteError) in try database.execute("PRAGMA incremental_vacuum") }
  }
}

extension CacheLimits {
  /// The maximum size of an entry on disk, in bytes: a larger one would evict a tenth of the others, and is
  /// not worth it.
  var mostBytesOfDiskEntry: Int { max(maxBytes, 0) / 10 }
}
