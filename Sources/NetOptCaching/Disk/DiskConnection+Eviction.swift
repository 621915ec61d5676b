import NetOptCore
import NetOptSQLite

/// The reason of an eviction.
package enum EvictionReason: String, Sendable {
  /// The store was full, and the entry had the lowest priority.
  case room
  /// The entry was older than `maxAge`.
  case age
}

extension DiskConnection {
  private struct Victim {
    let id: Int64
    let priority: Double
    let file: String?
    let key: StoredKey
  }

  /// Evicts entries older than `maxAge`, and then the entries with the lowest priority until `size` bytes and
  /// `more` entries fit. Call it in a transaction.
  ///
  /// GDSF (Cherkasova, 1998): when an entry is requested, its priority becomes the clock plus its hits times
  /// the cost of fetching it, divided by its size. The clock is the priority of the entry evicted last, so
  /// that entries without new requests are evicted eventually.
  ///
  /// - Returns: the names of the files of evicted entries, to be removed after the transaction.
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

  /// Writes the pending hits to the database. Call it in a transaction.
  func flushHits() throws(SQLiteError) {
    let hits = pendingHits
    pendingHits = [:]
    for (id, count) in hits { try statements.addHits.run(.integer(id), .integer(count)) }
  }

  /// The time and reason of the last eviction of one of the key's entries, if it is among the last 1000
  /// evictions.
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
