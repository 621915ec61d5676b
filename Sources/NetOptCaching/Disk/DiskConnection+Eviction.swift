import NetOptCore
import NetOptSQLite

/// Why an entry was evicted.
package enum EvictionReason: String, Sendable {
  /// There was no room, and it was worth the least.
  case room
  /// It was older than `maxAge`.
  case age
}

extension DiskConnection {
  private struct Victim {
    let id: Int64
    let priority: Double
    let file: String?
    let place: Place
  }

  /// Evicts what is worth the least until so many bytes, and so many entries, fit. In a transaction.
  ///
  /// GDSF (Cherkasova, 1998): an entry's priority is the clock when it was asked for last, and how often that was times what
  /// fetching it costs, by its size. The clock is the priority of what was evicted last, so that what is no longer asked for
  /// gets its turn.
  ///
  /// - Returns: the files of what was evicted, to be removed when the transaction is over.
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
          throw SQLiteError(corrupt: database.path, "the totals count entries that are not there")
        }
        try statements.setClock.run(.real(victim.priority))
        try evict(victim, .room, now, &files)
        totals = try self.totals()
      }
      if totals.entries < before { try statements.forgetEvictions.run(.integer(Self.mostEvictions)) }
      return files
    }
  }

  /// Writes down the hits since the last time. In a transaction.
  func flushHits() throws(SQLiteError) {
    let hits = pendingHits
    pendingHits = [:]
    for (id, count) in hits { try statements.addHits.run(.integer(id), .integer(count)) }
  }

  /// When and why the key's last entry was evicted, if that was one of the last thousand.
  func eviction(of key: CacheKey) throws(DiskError) -> (moment: Int64, reason: EvictionReason)? {
    let place = try Place(key)
    return try database { () throws(SQLiteError) in
      let rows = try statements.eviction.rows(.blob(place.digest), .blob(place.owner), .blob(place.text)) {
        (moment: $0.integer(0), reason: $0.text(1).flatMap(EvictionReason.init(rawValue:)))
      }
      return rows.first.flatMap { row in row.reason.map { (row.moment, $0) } }
    }
  }

  private func victim(_ statement: Statement, _ values: Statement.Value...) throws(SQLiteError) -> Victim? {
    func read(_ row: borrowing Row) -> Victim {
      Victim(
        id: row.integer(0), priority: row.real(1), file: row.text(2),
        place: Place(digest: row.bytes(3), owner: row.bytes(4), text: row.bytes(5)))
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
      .blob(victim.place.digest), .blob(victim.place.owner), .blob(victim.place.text), .integer(now),
      .text(reason.rawValue))
    if let file = victim.file { files.append(file) }
  }
}
