package import NetOptCore
import NetOptLocking
import NetOptSQLite

/// The disk tier of the cache: an SQLite database, with bodies of up to 100 KB in the database and larger
/// ones in files. The store survives the process, and several processes may share one directory.
///
/// No fault of the store reaches a request. An unreadable entry is a miss, and an entry that cannot be
/// written is not stored. The store reports each kind of fault once. It moves a corrupt database aside and
/// starts a new one.
///
/// Safe from any thread; calls run one at a time. The store reads and writes files and may wait for other
/// processes. Do not call it on an event loop, or on a thread of a pool that others need; see `DiskCache`.
package final class DiskStore: CacheStore {
  /// The directory, as passed to the initializer.
  package let directory: String
  /// The limits of the store.
  package let limits: CacheLimits
  private let state = Locked(State())
  private let now: @Sendable () -> Int64
  private let patience: Int32
  private let pause: Duration
  private let warn: @Sendable (NetOptError) -> Void

  /// Whether the store may change the directory, and create it when it is missing.
  private let changes: Bool

  private enum Fault: Hashable { case unusable, broken, failed, locked }

  private struct State: @unchecked Sendable {
    // Unchecked: the connection is used only under the lock.
    var connection: DiskConnection?
    var reportedFaults: Set<Fault> = []
    /// Removals to perform before any other work.
    var pendingRemovals = PendingRemovals()
    /// Whether waiting for the lock of the directory timed out. While this holds, opening the database does
    /// not wait for that lock.
    var hasLockTimedOut = false
    /// The store does not use the directory before this time, because another process kept it locked, or
    /// because it was unusable.
    var pausedUntil: MonotonicInstant?
  }

  /// Makes a store. The store opens the directory at its first use.
  ///
  /// - Parameters:
  ///   - directory: created when missing, with permissions for this user only. It must belong to this user,
  ///     must not be writable by others, and must not be a symbolic link.
  ///   - limits: the limits of the store; 1 GiB by default.
  ///   - patience: how long to wait for other processes that write, in milliseconds; 2000 by default.
  ///   - pause: after a wait timed out, every call is a miss for this time, without another wait; 5 s by
  ///     default. The store retries an unusable directory after twelve times this time.
  ///   - changes: whether the store may change the directory. If not, the directory must exist, and only
  ///     `entries` and `eviction` are useful.
  ///   - now: returns the date in milliseconds since 1970.
  ///   - warn: receives faults, each kind once. It is called on the caller's thread and must not use the
  ///     store.
  package init(
    _ directory: String, limits: CacheLimits = .disk, patience: Int32 = 2000,
    pause: Duration = .seconds(5), changes: Bool = true,
    now: @escaping @Sendable () -> Int64 = WallClock.now, warn: @escaping @Sendable (NetOptError) -> Void
  ) {
    self.directory = directory
    self.limits = limits
    self.patience = patience
    self.pause = pause
    self.changes = changes
    self.now = now
    self.warn = warn
  }

  /// Opens the database, evicts entries if the limits are lower than before, and removes files that killed
  /// processes have left. The first use of the store opens the database too.
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
    // The last attempt at the removals that are still pending.
    if hasPending { perform { (_) throws(DiskError) in } }
    flush()
    state.withLock { $0.connection = nil }
  }

  /// The entries of a key. The result excludes entries that are older than `maxAge`, fail their checksum, or
  /// belong to another key with the same digest.
  package func entries(for key: CacheKey) -> [CacheEntry] {
    let oldest = limits.maxAgeMilliseconds.map { now() - $0 } ?? .min
    return perform { (connection) throws(DiskError) in
      let entries = try connection.entries(for: key, since: oldest)
      if connection.pendingHits.count >= 8192 {
        do throws(DiskError) { try self.flush(connection) } catch {
          if error.isCorrupt { throw error }
          // Hit counts are estimates, and their loss must not cost the entries that were found.
          connection.pendingHits = [:]
        }
      }
      return entries
    } ?? []
  }

  /// Inserts an entry and removes the entries that it overlaps. The store rejects an entry larger than a
  /// tenth of `maxBytes`, but still removes the entries that it overlaps.
  package func insert(_ entry: CacheEntry) {
    perform(orRemoveLater: .entries(of: entry.key)) { (connection) throws(DiskError) in
      try connection.insert(entry, self.limits, now: self.now())
    }
  }

  /// Removes the entries that this entry overlaps, including seemingly newer ones: once the clock was set
  /// back, dates do not show which entry came first.
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

  /// Writes the pending hit counts to the database. A hit alone writes nothing.
  package func flush() {
    state.withLock { state in
      guard let connection = state.connection, !connection.pendingHits.isEmpty else { return }
      // A failure only makes the hit counts less accurate.
      try? flush(connection)
    }
  }

  private func flush(_ connection: DiskConnection) throws(DiskError) {
    try connection.transaction { () throws(DiskError) in
      try connection.database { () throws(SQLiteError) in try connection.flushHits() }
    }
  }

  /// The time of the last eviction of one of the key's entries, in milliseconds since 1970, and its reason.
  /// `nil` when none of the last 1000 evictions concerns the key.
  package func eviction(of key: CacheKey) -> (moment: Int64, reason: EvictionReason)? {
    perform { (connection) throws(DiskError) in try connection.eviction(of: key) } ?? nil
  }

  // MARK: Faults

  /// - Parameter removal: the removal to perform later when the work fails.
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

  /// Whether the removal concerns stored entries, as far as the store can tell. Reads do not wait for a
  /// process that locks the database, so this check works even when the removal itself failed. Without the
  /// check, new keys without stored entries would add up until the removal of everything is pending.
  private static func concerns(_ removal: PendingRemovals.Removal, _ state: State) -> Bool {
    guard case .entries(let key) = removal, let connection = state.connection,
      connection.directory.databaseIdentity == connection.identity
    else { return true }
    return (try? connection.has(key)) ?? true
  }

  private func attempt<Result>(
    _ work: (DiskConnection) throws(DiskError) -> Result, _ state: inout State,
    _ warnings: inout [NetOptError]
  ) -> Result? {
    if let end = state.pausedUntil {
      if SystemTimeSource().now() < end { return nil }
      state.pausedUntil = nil
    }
    // Retries once with the new database that replaces a corrupt one.
    for _ in 0..<2 {
      do throws(DiskError) {
        guard let connection = try connection(&state, &warnings) else { return nil }
        try performPending(&state.pendingRemovals, connection)
        return try work(connection)
      } catch {
        handle(error, &state, &warnings)
        if !error.isCorrupt || !changes { return nil }
      }
    }
    return nil
  }

  /// Performs the pending removals.
  private func performPending(
    _ removals: inout PendingRemovals, _ connection: DiskConnection
  ) throws(DiskError) {
    if removals.isEmpty { return }
    if removals.isEverything { try connection.removeAll() } else { try connection.remove(removals.keys) }
    removals = PendingRemovals()
  }

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
      do throws(DiskError) { connection = try connect(patience) } catch  where error.isCorrupt && changes {
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

  /// Leaves the directory alone for twelve times `pause`. After someone repairs the directory, the process
  /// does not have to be restarted.
  private func pauseUnusable(_ error: DiskError, _ state: inout State, _ warnings: inout [NetOptError]) {
    state.pausedUntil = SystemTimeSource().now() + pause * 12
    report(
      .unusable, error,
      changes ? "netopt caches nothing on disk until this is fixed" : "netopt finds no entries there",
      &state, &warnings
    )
  }

  /// - Parameter patience: how long to wait for the lock of the directory, in milliseconds.
  private func connect(_ patience: Int32) throws(DiskError) -> DiskConnection {
    let directory = try DiskDirectory(directory, mayCreate: changes)
    return try directory.locked(exclusively: false, patience: patience) { () throws(DiskError) in
      try DiskConnection(directory, mayCreate: changes, patience: self.patience)
    }
  }

  private func handle(_ error: DiskError, _ state: inout State, _ warnings: inout [NetOptError]) {
    if error.isCorrupt, changes {
      let identity = state.connection?.identity
      state.connection = nil
      moveAside(identity, error, &state, &warnings)
    } else if case .database(let cause) = error, cause.isMoved {
      state.connection = nil
    } else if error.isBusy {
      // Another process writes. The store skips this call, and the next calls do not wait one by one.
      state.pausedUntil = SystemTimeSource().now() + pause
      // A process that writes is soon done; a process that locks the directory itself for so long is not.
      if case .locked = error {
        state.hasLockTimedOut = true
        report(
          .locked, error, "netopt caches nothing on disk until that process releases the lock", &state,
          &warnings)
      }
    } else {
      let consequence =
        changes ? "netopt does not cache new responses on disk meanwhile" : "netopt finds no entries there"
      report(.failed, error, consequence, &state, &warnings)
    }
  }

  /// Moves a corrupt database aside, so that the next use creates a new one.
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

  private func report(
    _ fault: Fault, _ error: DiskError, _ consequence: String, _ state: inout State,
    _ warnings: inout [NetOptError]
  ) {
    if state.reportedFaults.insert(fault).inserted { warnings.append(error.netOptError(consequence)) }
  }
}
