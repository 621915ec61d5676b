import NetOptSQLite

/// The prepared statements of a disk cache.
struct DiskStatements {
  /// Selects by digest, owner and text: id, selectors, head, checksum, file, length, body; newest first.
  let find: Statement
  /// Selects by digest, owner and text: id, selectors, received, file, hits; newest first. It returns at most
  /// one row more than the maximum number of variants.
  let variants: Statement
  let insert: Statement
  let delete: Statement
  /// Deletes by id and checksum.
  let deleteDamaged: Statement
  /// Selects the number of entries, their bytes, and the clock. The result has one row, or two in a damaged
  /// database.
  let totals: Statement
  let setClock: Statement
  /// Selects the entry to evict next: id, priority, file, digest, owner, text.
  let cheapest: Statement
  /// Selects the oldest entry that was received before a given time, with the columns of `cheapest`.
  let expired: Statement
  let addHits: Statement
  /// Selects the id of the entry that names a file.
  let file: Statement
  let recordEviction: Statement
  let forgetEvictions: Statement
  /// Selects by digest, owner and text: the time and reason of the last eviction.
  let eviction: Statement

  init(_ database: Database) throws(SQLiteError) {
    func prepare(_ sql: String) throws(SQLiteError) -> Statement { try Statement(sql, in: database) }
    find = try prepare(
      """
      SELECT id, selectors, head, checksum, file, length, body FROM entries
      WHERE digest = ? AND owner = ? AND text = ? AND received >= ? ORDER BY received DESC, id DESC LIMIT 16
      """)
    variants = try prepare(
      """
      SELECT id, selectors, received, file, hits FROM entries WHERE digest = ? AND owner = ? AND text = ?
      ORDER BY received DESC, id DESC LIMIT \(DiskConnection.mostVariants + 1)
      """)
    insert = try prepare(
      """
      INSERT INTO entries (digest, owner, text, selectors, received, size, cost, hits, priority, length, file, checksum,
        head, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """)
    delete = try prepare("DELETE FROM entries WHERE id = ?")
    deleteDamaged = try prepare("DELETE FROM entries WHERE id = ? AND CAST(checksum AS BLOB) = ?")
    totals = try prepare("SELECT entries, bytes, clock FROM totals LIMIT 2")
    setClock = try prepare("UPDATE totals SET clock = max(clock, ?)")
    let victim = "SELECT id, priority, file, digest, owner, text FROM entries"
    cheapest = try prepare("\(victim) ORDER BY priority LIMIT 1")
    expired = try prepare("\(victim) WHERE received < ? ORDER BY received LIMIT 1")
    addHits = try prepare(
      """
      UPDATE entries SET hits = hits + ?2,
        priority = (SELECT clock FROM totals) + (hits + ?2) * CAST(cost AS REAL) / size WHERE id = ?1
      """)
    file = try prepare("SELECT id FROM entries WHERE file = ?")
    recordEviction = try prepare(
      "INSERT INTO evictions (digest, owner, text, moment, reason) VALUES (?, ?, ?, ?, ?)")
    forgetEvictions = try prepare("DELETE FROM evictions WHERE id <= (SELECT max(id) FROM evictions) - ?")
    eviction = try prepare(
      """
      SELECT moment, reason FROM evictions WHERE digest = ? AND owner = ? AND text = ? ORDER BY id DESC LIMIT 1
      """)
  }
}
