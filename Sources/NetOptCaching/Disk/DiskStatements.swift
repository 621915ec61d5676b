import NetOptSQLite

/// The prepared statements of a disk cache. `DiskSchema.definitions` explains the columns.
struct DiskStatements {
  /// Selects the entries of a key that were received at a given time or later, newest first, at most 16. The
  /// time is in milliseconds since 1970.
  ///
  /// Parameters: digest, owner, text, earliest time. Columns: id, selectors, head, checksum, file, length,
  /// body.
  let find: Statement
  /// Selects the entries of a key, newest first, at most one more than `DiskConnection.mostVariants`. The
  /// additional row shows that a damaged database has too many.
  ///
  /// Parameters: digest, owner, text. Columns: id, selectors, received, file, hits.
  let variants: Statement
  /// Inserts an entry. The parameters are all columns except `id`, in the order of the statement.
  let insert: Statement
  /// Deletes the entry with an id.
  let delete: Statement
  /// Deletes the entry with an id if its checksum equals the given one. Parameters: id, checksum.
  let deleteDamaged: Statement
  /// Selects the number of entries, the sum of their sizes, and the clock of GDSF. A sound database has one
  /// such row. The limit of 2 shows whether a damaged database has more.
  let totals: Statement
  /// Sets the clock of GDSF to a value, unless the clock is already greater. The clock is a priority and not
  /// a time (`DiskConnection.makeRoom`).
  let setClock: Statement
  /// Selects the entry with the lowest priority, which is evicted next.
  ///
  /// Columns: id, priority, file, digest, owner, text.
  let cheapest: Statement
  /// Selects the oldest entry, if it was received before a given time in milliseconds since 1970. Columns:
  /// those of `cheapest`.
  let expired: Statement
  /// Adds a number of hits to an entry and updates its priority. Parameters: id, number of hits.
  let addHits: Statement
  /// Selects the id of the entry whose body is in the file with a given name.
  let file: Statement
  /// Inserts an eviction. Parameters: digest, owner, text, moment, reason.
  let recordEviction: Statement
  /// Deletes the oldest evictions. The parameter is the number of evictions to keep.
  let forgetEvictions: Statement
  /// Selects the moment and the reason of the last eviction of a key. Parameters: digest, owner, text.
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
      INSERT INTO entries (digest, owner, text, selectors, resource, received, size, cost, hits, priority, length, file,
        checksum, head, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
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
