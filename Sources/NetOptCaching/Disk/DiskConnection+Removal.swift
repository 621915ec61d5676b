import NetOptSQLite

/// How far the removal of a selection has come.
package struct RemovalPosition: Hashable, Sendable {
  /// For a URL, the index of the next digest or number. For a name, `CacheEntry.resource` of the last entry.
  var value = Int64.min
  /// For a name, the row number of the last entry.
  var id = Int64.min

  /// The position before the first entry.
  package init() {}
}

/// The use of a disk store by all processes.
package struct DiskUsage: Hashable, Sendable {
  /// The number of entries.
  package var entries: Int64
  /// The disk space of all entries in bytes, estimated by `DiskSchema.footprint`.
  package var bytes: Int64
  /// How many of the last 1000 evictions had the reason `EvictionReason.room`.
  package var evictedForRoom: Int64
  /// How many of the last 1000 evictions had the reason `EvictionReason.age`.
  package var evictedForAge: Int64
}

extension DiskConnection {
  /// The maximum number of rows that one step of a removal reads, and also of digests and numbers that it
  /// looks up. A step takes some milliseconds.
  static let removalBatch = 512

  /// The columns of a row that decide about its removal.
  private struct Candidate {
    let id: Int64
    /// The name of the file with the body; `nil` when the body is in the row.
    let file: String?
    let resource: Int64
    /// The text of the key.
    let text: [UInt8]
  }

  /// Removes the entries of the next step of a removal.
  ///
  /// - Returns: where the next step begins; `nil` when the removal is done.
  func remove(
    _ selection: CacheSelection, from position: RemovalPosition
  ) throws(DiskError) -> RemovalPosition? {
    switch selection {
    case .everything:
      try removeAll()
      return nil
    case .url(let url):
      return try removeStep { () throws(DiskError) in try candidates(of: url, from: position) }
    case .name(let name):
      return try removeStep { () throws(DiskError) in try candidates(named: name, from: position) }
    }
  }

  /// Removes the rows that `find` returns.
  ///
  /// - Parameter find: returns the rows to remove, and where the next step begins.
  private func removeStep(
    _ find: () throws(DiskError) -> (rows: [Candidate], next: RemovalPosition?)
  ) throws(DiskError) -> RemovalPosition? {
    // Most steps find nothing. A read takes no lock, while a transaction waits for other writers.
    let found = try find()
    if found.rows.isEmpty { return found.next }
    let (files, next) = try transaction { () throws(DiskError) in
      let found = try find()
      try database { () throws(SQLiteError) in
        for row in found.rows { try statements.delete.run(.integer(row.id)) }
      }
      return (found.rows.compactMap(\.file), found.next)
    }
    for file in files { self.files.remove(file) }
    return next
  }

  /// The rows with the next digests and numbers of a URL.
  private func candidates(
    of url: CacheSelection.URLResponses, from position: RemovalPosition
  ) throws(DiskError) -> (rows: [Candidate], next: RemovalPosition?) {
    try database { () throws(SQLiteError) in
      let columns = "SELECT id, file, resource, text FROM entries WHERE"
      // A row with a number belongs to the URL that has the number, whatever its key (`CacheSelection`).
      let byDigest = try Statement("\(columns) digest = ? AND resource IS NULL LIMIT ?", in: database)
      let byResource = try Statement("\(columns) resource = ? LIMIT ?", in: database)
      // The order must be the same in each step.
      let digests = url.digests.sorted { ($0.high, $0.low) < ($1.high, $1.low) }
      let resources = url.resources.sorted()
      var index = max(Int(clamping: position.value), 0)
      let end = min(index + Self.removalBatch, digests.count + resources.count)
      var rows: [Candidate] = []
      while index < end {
        let limit = Statement.Value.integer(Int64(Self.removalBatch - rows.count))
        rows +=
          index < digests.count
          ? try byDigest.rows(.blob(digests[index].bytes), limit, read: Self.candidate)
          : try byResource.rows(.integer(resources[index - digests.count]), limit, read: Self.candidate)
        // There may be more rows with this digest or number. The next step finds them, because this step
        // removes these rows.
        if rows.count == Self.removalBatch { break }
        index += 1
      }
      var next = RemovalPosition()
      next.value = Int64(index)
      return (rows, index < digests.count + resources.count ? next : nil)
    }
  }

  /// The rows of the API with a name among the next rows of all APIs. There is no index of names. The scan
  /// reads only rows with a number in `resource`, which all rows of a declared API have.
  private func candidates(
    named name: String, from position: RemovalPosition
  ) throws(DiskError) -> (rows: [Candidate], next: RemovalPosition?) {
    try database { () throws(SQLiteError) in
      let scan = try Statement(
        """
        SELECT id, file, resource, text FROM entries INDEXED BY entries_resource
        WHERE resource >= ?1 AND (resource > ?1 OR id > ?2) ORDER BY resource, id LIMIT \(Self.removalBatch)
        """, in: database)
      let all = try scan.rows(.integer(position.value), .integer(position.id), read: Self.candidate)
      var next: RemovalPosition?
      if all.count == Self.removalBatch, let last = all.last {
        next = RemovalPosition()
        next?.value = last.resource
        next?.id = last.id
      }
      return (all.filter { ResourceHash.isNamed($0.resource) && CacheSelection.hasName(name, $0.text) }, next)
    }
  }

  private static func candidate(_ row: borrowing Row) -> Candidate {
    Candidate(id: row.integer(0), file: row.text(1), resource: row.integer(2), text: row.bytes(3))
  }

  /// The number of entries, their disk space and the last evictions.
  func usage() throws(DiskError) -> DiskUsage {
    try database { () throws(SQLiteError) in
      let totals = try totals()
      func evictions(_ reason: EvictionReason) throws(SQLiteError) -> Int64 {
        let count = try Statement("SELECT count(*) FROM evictions WHERE reason = ?", in: database)
        return try count.integer(.text(reason.rawValue)) ?? 0
      }
      return DiskUsage(
        entries: totals.entries, bytes: totals.bytes, evictedForRoom: try evictions(.room),
        evictedForAge: try evictions(.age))
    }
  }
}
