import NetOptCore
import NetOptSQLite

/// Why an entry was evicted. The raw values are stored in the database.
package enum EvictionReason: String, Sendable {
  /// The store had no room for another entry, and this entry had the lowest priority.
  case room
  /// The entry was older than the limit `maxAge`.
  case age
}

extension DiskConnection {
  /// The row of an entry that is to be evicted.
  private struct Victim {
    /// The row's number in the database.
    let id: Int64
    /// The GDSF priority; entries with a low priority are evicted first.
    let priority: Double
    /// The name of the file with the body; `nil` when the body is in the row.
    let file: String?
    let key: StoredKey
  }

  /// Evicts the entries older than `maxAge`. Then evicts the entries with the lowest priority until there is
  /// room. Call it in a transaction.
  ///
  /// The priority is that of GDSF (Cherkasova, 1998): clock + hits * cost / size, where the cost is the time
  /// that it took to fetch the entry. It is computed when the entry is inserted, and again when its hits are
  /// written. The clock is the priority of the entry that was last evicted for room. An eviction never lowers
  /// it. New entries thus get higher and higher priorities, and old entries without new hits are evicted.
  ///
  /// - Parameters:
  ///   - size: the bytes for which there must be room.
  ///   - more: the number of entries for which there must be room.
  ///   - now: the date in milliseconds since 1970, for ages and for the record of evictions.
  /// - Returns: the names of the files of evicted entries. Remove these files after the transaction.
  func makeRoom(
    _ limits: CacheLimits, for size: Int, entries more: Int, now: Int64
  ) throws(DiskError) -> [String] {
    try database { () throws(SQLiteError) in
      try flushHits()
      let before = try totals().entries
      var files: [String] = []
      if let maxAge = limits.maxAgeMilliseconds {
        while let victim = try victim(statements.expired, .integer(now - maxAge)) {
          try evict(victim, .age, now, &files)
        }
      }
      var totals = try totals()
      while totals.entries > 0,
        totals.bytes > Int64(limits.maxBytes - size)
          || totals.entries > Int64(limits.maxEntries ?? .max) - Int64(more)
      {
        guard let victim = try victim(statements.cheapest) else {
          throw SQLiteError(corrupt: database.path, "the totals count entries that do not exist")
        }
        try statements.setClock.run(.real(victim.priority))
        try evict(victim, .room, now, &files)
        totals = try self.totals()
      }
      if totals.entries < before { try statements.forgetEvictions.run(.integer(Self.mostEvictions)) }
      return files
    }
  }

  /// Adds the pending hits to the rows in the database, which also raises their priorities. Call it in a
  /// transaction.
  func flushHits() throws(SQLiteError) {
    let hits = pendingHits
    pendingHits = [:]
    for (id, count) in hits { try statements.addHits.run(.integer(id), .integer(count)) }
  }

  /// When and why an entry of the key was last evicted. `moment` is in milliseconds since 1970. `nil` when
  /// the store has no record of it. The store keeps a record of its last 1000 evictions, and `removeAll`
  /// deletes this record.
  func eviction(of key: CacheKey) throws(DiskError) -> (moment: Int64, reason: EvictionReason)? {
    let storedKey = try StoredKey(key)
    return try database { () throws(SQLiteError) in
      let rows = try statements.eviction.rows(
        .blob(storedKey.digest), .blob(storedKey.owner), .blob(storedKey.text)
      ) {
        (moment: $0.integer(0), reason: $0.text(1).flatMap(EvictionReason.init(rawValue:)))
      }
      return rows.first.flatMap { row in row.reason.map { (row.moment, $0) } }
    }
  }

  /// The row that a statement selects for eviction; `nil` when it selects none.
  ///
  /// - Parameter values: the statement's parameter, or nothing for a statement without parameters.
  private func victim(_ statement: Statement, _ values: Statement.Value...) throws(SQLiteError) -> Victim? {
    func read(_ row: borrowing Row) -> Victim {
      Victim(
        id: row.integer(0), priority: row.real(1), file: row.text(2),
        key: StoredKey(digest: row.bytes(3), owner: row.bytes(4), text: row.bytes(5)))
    }
    let rows =
      if let value = values.first { try statement.rows(value, read: read) } else {
        try statement.rows(read: read)
      }
    return rows.first
  }

  /// Deletes a row and records its eviction. Appends the name of the row's file to `files`, if the row has
  /// one. The caller removes these files after the transaction.
  private func evict(
    _ victim: Victim, _ reason: EvictionReason, _ now: Int64, _ files: inout [String]
  ) throws(SQLiteError) {
    try statements.delete.run(.integer(victim.id))
    try statements.recordEviction.run(
      .blob(victim.key.digest), .blob(victim.key.owner), .blob(victim.key.text), .integer(now),
      .text(reason.rawValue))
    if let file = victim.file { files.append(file) }
  }
}
