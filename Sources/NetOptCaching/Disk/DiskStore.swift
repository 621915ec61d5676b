package import NetOptCore
import NetOptLocking
import NetOptSQLite

/// The disk tier of the cache: an SQLite database, with bodies of up to 100 KB in the database and larger
/// ones in files. The store survives the process, and several processes may share one directory.
///
/// A request never fails because of the store. A look-up that fails is a miss, and an entry that cannot be
/// written is not stored. The store reports each kind of fault once. It renames the file of a corrupt
/// database and creates a new one.
///
/// Safe from any thread; calls run one at a time. The store reads and writes files and may wait for other
/// processes. Do not call it on an event loop, or on a thread of a pool that others need; see `DiskCache`.
package final class DiskStore: CacheStore {
  /// The directory, as passed to the initializer.
  package let directory: String
  /// The limits of the store.
  package let limits: CacheLimits
  /// The state under the lock of the store. Each call holds the lock while it reads and writes files.
  private let state = Locked(State())
  /// Returns the date of the system clock in milliseconds since 1970.
  private let now: @Sendable () -> Int64
  /// How long the store waits for a lock that another process holds, in milliseconds.
  private let patience: Int32
  /// How long the store leaves the directory unused after it has waited in vain for another process's lock.
  private let pause: Duration
  /// Receives the faults to report.
  private let warn: @Sendable (NetOptError) -> Void

  /// Whether the store may write to the directory, and create it when it is missing.
  private let mayChange: Bool

  /// The kinds of faults, of which each is reported once: the directory cannot be used, the database is
  /// corrupt, a read or write failed, another process holds the lock of the directory.
  private enum Fault: Hashable { case unusable, broken, failed, locked }

  private struct State: @unchecked Sendable {
    // Unchecked: the connection is used only under the lock.
    /// The open database; `nil` before the first use, and after a fault.
    var connection: DiskConnection?
    /// The kinds of faults that were reported, which are not reported again.
    var reportedFaults: Set<Fault> = []
    /// The removals that failed. The store performs them before any other work.
    var pendingRemovals = PendingRemovals()
    /// Whether the last wait for the lock of the directory timed out. As long as this is true, the store
    /// tries the lock without waiting. A successful attempt sets it to false.
    var hasLockTimedOut = false
    /// The end of the current pause by the monotonic clock; `nil` outside a pause. During a pause, the store
    /// does not use the directory, because the directory is unusable, or because another process has locked
    /// the directory or the database.
    var pausedUntil: MonotonicInstant?
  }

  /// Makes a store. The store opens the directory at its first use.
  ///
  /// - Parameters:
  ///   - directory: created when missing, with permissions for this user only. It must belong to this user,
  ///     must not be writable by others, and must not be a symbolic link.
  ///   - limits: the limits of the store; 1 GiB by default.
  ///   - patience: how long the store waits for a lock that another process holds, in milliseconds; 2000 by
  ///     default.
  ///   - pause: how long the store does not use the directory after such a wait timed out; 5 s by default.
  ///     During this time every look-up is a miss, and no call waits. After the directory turned out to be
  ///     unusable, the pause is twelve times as long.
  ///   - mayChange: whether the store may write to the directory. If not, the directory must exist. Such a
  ///     store is for callers that use only `entries` and `eviction`.
  ///   - now: returns the date of the system clock in milliseconds since 1970.
  ///   - warn: receives faults, each kind once. The store calls this closure on the thread whose call found
  ///     the fault. The closure must not call the store.
  package init(
    _ directory: String, limits: CacheLimits = .disk, patience: Int32 = 2000,
    pause: Duration = .seconds(5), mayChange: Bool = true,
    now: @escaping @Sendable () -> Int64 = WallClock.now, warn: @escaping @Sendable (NetOptError) -> Void
  ) {
    self.directory = directory
    self.limits = limits
    self.patience = patience
    self.pause = pause
    self.mayChange = mayChange
    self.now = now
    self.warn = warn
  }

  /// Opens the database, removes files that killed processes have left, and evicts entries if the limits are
  /// lower than before. A call is optional, because the first use of the store opens the database too.
  package func open() {
    perform { (connection) throws(DiskError) in
      let files = try connection.transaction { () throws(DiskError) in
        try connection.makeRoom(self.limits, for: 0, entries: 0, now: self.now())
      }
      for file in files { connection.files.remove(file) }
    }
  }

  /// Closes the database. The next use opens it again.
  package func close() {
    let hasPending = state.withLock { state in
      state.pausedUntil = nil
      return !state.pendingRemovals.isEmpty
    }
    // `perform` tries the pending removals a last time before its work, which is empty here.
    if hasPending { perform { (_) throws(DiskError) in } }
    flush()
    state.withLock { $0.connection = nil }
  }

  /// The entries of a key, newest first. The result excludes entries that are older than `maxAge`, that fail
  /// their checksum, or whose key only has the same digest.
  package func entries(for key: CacheKey) -> [CacheEntry] {
    let oldest = limits.maxAgeMilliseconds.map { now() - $0 } ?? .min
    return perform { (connection) throws(DiskError) in
      let entries = try connection.entries(for: key, since: oldest)
      if connection.pendingHits.count >= 8192 {
        do throws(DiskError) { try self.flush(connection) } catch {
          if error.isCorrupt { throw error }
          // Hit counts are estimates. The caller gets the entries even if the counts are lost.
          connection.pendingHits = [:]
        }
      }
      return entries
    } ?? []
  }

  /// Inserts an entry and removes the entries that it overlaps (`CacheEntry.overlaps`). The store rejects an
  /// entry larger than a tenth of `maxBytes`, but still removes the entries that it overlaps.
  package func insert(_ entry: CacheEntry) {
    perform(orRemoveLater: .entries(of: entry.key)) { (connection) throws(DiskError) in
      try connection.insert(entry, self.limits, now: self.now())
    }
  }

  /// Removes the entries that this entry overlaps, including those that were received later. After the system
  /// clock was set back, the times do not show which entry was stored first.
  package func remove(_ entry: CacheEntry) {
    perform(orRemoveLater: .entries(of: entry.key)) { (connection) throws(DiskError) in
      try connection.remove(entry)
    }
  }

  /// Removes all entries of a key.
  package func removeAll(for key: CacheKey) {
    perform(orRemoveLater: .entries(of: key)) { (connection) throws(DiskError) in
      try connection.remove(key) { _ in true }
    }
  }

  /// Removes all entries.
  package func removeAll() {
    perform(orRemoveLater: .everything) { (connection) throws(DiskError) in try connection.removeAll() }
  }

  /// Removes entries of a selection, about `DiskConnection.removalBatch` of them. Call it again with the
  /// result until the result is `nil`, so that no call holds the lock of the store for long. If the removal
  /// fails, it becomes pending as a whole.
  package func remove(_ selection: CacheSelection, from position: RemovalPosition) -> RemovalPosition? {
    perform(orRemoveLater: .selection(selection)) {
      (connection) throws(DiskError) in try connection.remove(selection, from: position)
    } ?? nil
  }

  /// Makes a removal pending: the store performs it before any other work. Does not use the directory.
  func removeLater(_ removal: PendingRemovals.Removal) {
    state.withLock { $0.pendingRemovals.add(removal) }
  }

  /// The number of entries, their disk space and the last evictions; `nil` when the directory cannot be used.
  package func usage() -> DiskUsage? {
    perform { (connection) throws(DiskError) in try connection.usage() }
  }

  /// Writes the pending hit counts to the database. A hit itself writes nothing; it only adds to these
  /// counts.
  package func flush() {
    state.withLock { state in
      guard let connection = state.connection, !connection.pendingHits.isEmpty else { return }
      // A failure only makes the hit counts less accurate.
      try? flush(connection)
    }
  }

  /// Writes the pending hit counts of a connection in a transaction.
  private func flush(_ connection: DiskConnection) throws(DiskError) {
    try connection.transaction { () throws(DiskError) in
      try connection.database { () throws(SQLiteError) in try connection.flushHits() }
    }
  }

  /// When an entry of the key was evicted last, in milliseconds since 1970, and why; `nil` when none of the
  /// last 1000 evictions concerns the key.
  package func eviction(of key: CacheKey) -> (moment: Int64, reason: EvictionReason)? {
    perform { (connection) throws(DiskError) in try connection.eviction(of: key) } ?? nil
  }

  // MARK: Faults

  /// Runs work on the database under the lock of the store, and then reports new faults.
  ///
  /// - Parameter removal: the removal that becomes pending when the work fails.
  /// - Returns: `nil` when the work failed, or when the store is in a pause.
  @discardableResult
  private func perform<Result: Sendable>(
    orRemoveLater removal: PendingRemovals.Removal? = nil,
    _ work: (DiskConnection) throws(DiskError) -> Result
  ) -> Result? {
    var warnings: [NetOptError] = []
    let result = state.withLock { state in
      let result = attempt(work, &state, &warnings)
      if result == nil, let removal, Self.concerns(removal, state) { state.pendingRemovals.add(removal) }
      return result
    }
    for warning in warnings { warn(warning) }
    return result
  }

  /// Whether the database may contain entries that the removal would remove; true if the store cannot tell. A
  /// read does not wait for a process that writes, so the check works even when the removal itself failed.
  ///
  /// Without this check, every new response that the store cannot write would add its key to the pending
  /// removals, although nothing is stored for the key. Too many keys turn into the removal of everything.
  private static func concerns(_ removal: PendingRemovals.Removal, _ state: State) -> Bool {
    guard case .entries(let key) = removal, let connection = state.connection,
      connection.directory.databaseIdentity == connection.identity
    else { return true }
    return (try? connection.has(key)) ?? true
  }

  /// Performs the pending removals and then the work. Returns `nil` in a pause and after a failure.
  private func attempt<Result>(
    _ work: (DiskConnection) throws(DiskError) -> Result, _ state: inout State,
    _ warnings: inout [NetOptError]
  ) -> Result? {
    if let end = state.pausedUntil {
      if SystemTimeSource().now() < end { return nil }
      state.pausedUntil = nil
    }
    // The second attempt uses the new database that has replaced a corrupt one.
    for _ in 0..<2 {
      do throws(DiskError) {
        guard let connection = try connection(&state, &warnings) else { return nil }
        try performPending(&state.pendingRemovals, connection)
        return try work(connection)
      } catch {
        handle(error, &state, &warnings)
        if !error.isCorrupt || !mayChange { return nil }
      }
    }
    return nil
  }

  /// Performs the pending removals, and clears them when they succeed.
  private func performPending(
    _ removals: inout PendingRemovals, _ connection: DiskConnection
  ) throws(DiskError) {
    if removals.isEmpty { return }
    if removals.isEverything { try connection.removeAll() } else { try connection.remove(removals.keys) }
    for selection in removals.selections {
      var position: RemovalPosition? = RemovalPosition()
      while let next = position { position = try connection.remove(selection, from: next) }
    }
    removals = PendingRemovals()
  }

  /// Returns the open connection, or opens the database. Begins a pause and returns `nil` when the directory
  /// is unusable.
  private func connection(
    _ state: inout State, _ warnings: inout [NetOptError]
  ) throws(DiskError) -> DiskConnection? {
    if let connection = state.connection {
      // Another process may have removed the directory, or replaced a corrupt database.
      if connection.directory.databaseIdentity == connection.identity { return connection }
      state.connection = nil
    }
    do throws(DiskError) {
      let connection: DiskConnection
      let patience = state.hasLockTimedOut ? 0 : patience
      do throws(DiskError) { connection = try connect(patience) } catch  where error.isCorrupt && mayChange {
        moveAside(nil, error, &state, &warnings)
        connection = try connect(patience)
      }
      state.hasLockTimedOut = false
      state.connection = connection
      return connection
    } catch {
      if error.isBusy { throw error }
      pauseUnusable(error, &state, &warnings)
      return nil
    }
  }

  /// Reports an unusable directory, and begins a pause of twelve times `pause`. Afterwards the store tries
  /// again, so a repair of the directory takes effect without a restart of the process.
  private func pauseUnusable(_ error: DiskError, _ state: inout State, _ warnings: inout [NetOptError]) {
    state.pausedUntil = SystemTimeSource().now() + pause * 12
    report(
      .unusable, error,
      mayChange ? "netopt caches nothing on disk until this is fixed" : "netopt finds no entries there",
      &state, &warnings
    )
  }

  /// Opens the database.
  ///
  /// - Parameter patience: how long to wait for the lock of the directory, in milliseconds. For the locks of
  ///   the database, the store waits for `self.patience`.
  private func connect(_ patience: Int32) throws(DiskError) -> DiskConnection {
    let directory = try DiskDirectory(directory, mayCreate: mayChange)
    return try directory.locked(exclusively: false, patience: patience) { () throws(DiskError) in
      try DiskConnection(directory, mayCreate: mayChange, patience: self.patience)
    }
  }

  /// Reacts to a failure of the work: replaces a corrupt database, closes a database whose file was moved,
  /// begins a pause when another process holds a lock, and reports other faults.
  private func handle(_ error: DiskError, _ state: inout State, _ warnings: inout [NetOptError]) {
    if error.isCorrupt, mayChange {
      let identity = state.connection?.identity
      state.connection = nil
      moveAside(identity, error, &state, &warnings)
    } else if case .database(let cause) = error, cause.isMoved {
      state.connection = nil
    } else if error.isBusy {
      // Another process holds a lock. The pause keeps the next calls from waiting one after the other.
      state.pausedUntil = SystemTimeSource().now() + pause
      // A lock of the database needs no report: the other process only writes, which ends soon. A process
      // that locks the directory for so long may never release the lock.
      if case .locked = error {
        state.hasLockTimedOut = true
        report(
          .locked, error, "netopt caches nothing on disk until that process releases the lock", &state,
          &warnings)
      }
    } else {
      let consequence =
        mayChange ? "netopt does not cache new responses on disk meanwhile" : "netopt finds no entries there"
      report(.failed, error, consequence, &state, &warnings)
    }
  }

  /// Renames the file of a corrupt database, so that the next use creates a new database.
  ///
  /// - Parameter identity: the file that the failed connection had opened; `nil` when the database could not
  ///   be opened. The store does not rename the file if another process has already replaced it.
  private func moveAside(
    _ identity: DiskDirectory.Identity?, _ error: DiskError, _ state: inout State,
    _ warnings: inout [NetOptError]
  ) {
    do throws(DiskError) {
      let directory = try DiskDirectory(directory, mayCreate: true)
      let isMoved = try directory.moveDatabaseAside(
        identity ?? directory.databaseIdentity, patience: patience)
      guard isMoved else { return }
      report(
        .broken, error, "netopt renamed it to \(directory.broken) and starts a new one", &state, &warnings)
    } catch {
      if error.isBusy { handle(error, &state, &warnings) } else { pauseUnusable(error, &state, &warnings) }
    }
  }

  /// Adds a warning, unless a fault of this kind was reported before.
  private func report(
    _ fault: Fault, _ error: DiskError, _ consequence: String, _ state: inout State,
    _ warnings: inout [NetOptError]
  ) {
    if state.reportedFaults.insert(fault).inserted { warnings.append(error.netOptError(consequence)) }
  }
}
