import NetOptSQLite

/// The statements of a disk cache, prepared once.
struct DiskStatements {
  /// By digest, owner and text: id, selectors, head, checksum, file, length, body; the newest first.
  let find: Statement
  /// By digest, owner and text: id, selectors, received, file, hits; the newest first, one more than there may be.
  let variants: Statement
  let insert: Statement
  let delete: Statement
  /// By id and checksum.
  let deleteDamaged: Statement
  /// How many entries and bytes there are, and the clock; one row, or two in a damaged database.
  let totals: Statement
  let setClock: Statement
  /// The entry to evict next: id, priority, file, digest, owner, text.
  let cheapest: Statement
  /// The oldest entry that was received before a moment, with the same columns.
  let expired: Statement
  let addHits: Statement
  /// Whether a file is named by an entry.
  let file: Statement
  let recordEviction: Statement
  let forgetEvictions: Statement
  /// By digest, owner and text: when, and why.
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
