package import NetOptCore
import NetOptLocking
import NetOptSQLite

/// Entries on a disk: an SQLite database with bodies of up to 100 KB, and files for larger ones. It survives the process,
/// and several processes may share one directory.
///
/// Nothing that goes wrong here gets to a request: what cannot be read is a miss, what cannot be written is not kept, and
/// what went wrong is said once. A database that is broken is put aside, and a new one is begun.
///
/// Safe from any thread, one at a time gets in. It reads and writes files, and may wait for other processes: not to be
/// called on an event loop, nor on a thread of a pool that others need; see `DiskCache`.
package final class DiskStore: CacheStore {
  /// The directory, as it was given.
  package let directory: String
  /// What the store keeps.
  package let limits: CacheLimits
  private let state = Locked(State())
  private let now: @Sendable () -> Int64
  private let patience: Int32
  private let rest: Duration
  private let warn: @Sendable (NetOptError) -> Void

  /// Whether the directory may be changed, and made when it is not there.
  private let changes: Bool

  private enum Fault: Hashable { case unusable, broken, failed, locked }

  private struct State: @unchecked Sendable {
    // Unchecked: the connection is used under the lock alone.
    var connection: DiskConnection?
    var said: Set<Fault> = []
    /// What has to be removed before anything else is done.
    var owed = OwedRemovals()
    /// Whether it was waited in vain for who has the directory: until that one lets go nobody waits again.
    var isHeld = false
    /// Until when the directory is left alone: another process has it for long, or it cannot be used as it is.
    var restsUntil: MonotonicInstant?
  }

  /// Makes a store; the directory is looked at when the store is used first.
  ///
  /// - Parameters:
  ///   - directory: made when it is not there, for this user alone. It must belong to this user, others must not be able to
  ///     write to it, and it may be no symbolic link.
  ///   - limits: what is kept; 1 GiB by default.
  ///   - patience: how long to wait for other processes that write, in milliseconds.
  ///   - rest: for how long everything is a miss, without waiting again, when that was in vain; 5 s by default. A directory
  ///     that cannot be used is looked at again after twelve times as long.
  ///   - changes: whether the directory may be changed; otherwise it has to be there, and only `entries` and `eviction`
  ///     are of use.
  ///   - now: the date in milliseconds since 1970.
  ///   - warn: is told what goes wrong, each kind once. It is called on the caller's thread and must not use the store.
  package init(
    _ directory: String, limits: CacheLimits = .disk, patience: Int32 = 2000,
    rest: Duration = .seconds(5), changes: Bool = true,
    now: @escaping @Sendable () -> Int64 = WallClock.now, warn: @escaping @Sendable (NetOptError) -> Void
  ) {
    self.directory = directory
    self.limits = limits
    self.patience = patience
    self.rest = rest
    self.changes = changes
    self.now = now
    self.warn = warn
  }

  /// Opens the database, makes room if the limits are lower than they were, and removes what killed processes have left.
  /// The first use does so too.
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
    let owes = state.withLock { state in
      state.restsUntil = nil
      return !state.owed.isEmpty
    }
    // What is still to be removed has its last chance.
    if owes { perform { (_) throws(DiskError) in } }
    flush()
    state.withLock { $0.connection = nil }
  }

  /// The entries of a key. What is too old, does not pass its checksum, or has another key with the same digest is left
  /// out.
  package func entries(for key: CacheKey) -> [CacheEntry] {
    let oldest = limits.maxAgeMilliseconds.map { now() - $0 } ?? .min
    return perform { (connection) throws(DiskError) in
      let entries = try connection.entries(for: key, since: oldest)
      if connection.pendingHits.count >= 8192 {
        do throws(DiskError) { try self.flush(connection) } catch {
          if error.isCorrupt { throw error }
          // They are an estimate, and must not cost what was found.
          connection.pendingHits = [:]
        }
      }
      return entries
    } ?? []
  }

  /// Keeps an entry in the place of those that it overlaps. One that is larger than a tenth of `maxBytes` is
  /// not kept, and the one in its place is forgotten.
  package func insert(_ entry: CacheEntry) {
    perform(owing: .entries(of: entry.key)) { (connection) throws(DiskError) in
      try connection.insert(entry, self.limits, now: self.now())
    }
  }

  /// Forgets what the entry overlaps, also what seems newer: dates of the clock do not tell which came first once it was set back.
  package func remove(_ entry: CacheEntry) {
    perform(owing: .entries(of: entry.key)) { (connection) throws(DiskError) in
      try connection.remove(entry)
    }
  }

  /// Forgets all entries of a key.
  package func removeAll(for key: CacheKey) {
    perform(owing: .entries(of: key)) { (connection) throws(DiskError) in
      try connection.remove(key) { _ in true }
    }
  }

  /// Forgets everything.
  package func removeAll() {
    perform(owing: .everything) { (connection) throws(DiskError) in try connection.removeAll() }
  }

  /// Writes down how often entries were asked for. A hit by itself writes nothing.
  package func flush() {
    state.withLock { state in
      guard let connection = state.connection, !connection.pendingHits.isEmpty else { return }
      // What cannot be written here is an estimate that gets a little worse.
      try? flush(connection)
    }
  }

  private func flush(_ connection: DiskConnection) throws(DiskError) {
    try connection.transaction { () throws(DiskError) in
      try connection.database { () throws(SQLiteError) in try connection.flushHits() }
    }
  }

  /// When the key's last entry was evicted, in milliseconds since 1970, and why; `nil` when it was not, or long ago.
  package func eviction(of key: CacheKey) -> (moment: Int64, reason: EvictionReason)? {
    perform { (connection) throws(DiskError) in try connection.eviction(of: key) } ?? nil
  }

  // MARK: Faults

  /// - Parameter removal: what has to be removed later when the work fails.
  @discardableResult
  private func perform<Result: Sendable>(
    owing removal: OwedRemovals.Removal? = nil, _ work: (DiskConnection) throws(DiskError) -> Result
  ) -> Result? {
    var warnings: [NetOptError] = []
    let result = state.withLock { state in
      let result = attempt(work, &state, &warnings)
      if result == nil, let removal, Self.concerns(removal, state) { state.owed.add(removal) }
      return result
    }
    for warning in warnings { warn(warning) }
    return result
  }

  /// Whether there is anything to be removed, as far as can be seen: who has the database may be waited for by those who write,
  /// and not by those who read. Otherwise new keys alone, of which nothing is stored, would add up to everything.
  private static func concerns(_ removal: OwedRemovals.Removal, _ state: State) -> Bool {
    guard case .entries(let key) = removal, let connection = state.connection,
      connection.directory.databaseIdentity == connection.identity
    else { return true }
    return (try? connection.has(key)) ?? true
  }

  private func attempt<Result>(
    _ work: (DiskConnection) throws(DiskError) -> Result, _ state: inout State,
    _ warnings: inout [NetOptError]
  ) -> Result? {
    if let end = state.restsUntil {
      if SystemTimeSource().now() < end { return nil }
      state.restsUntil = nil
    }
    // A second time with the database that was begun in the place of a broken one.
    for _ in 0..<2 {
      do throws(DiskError) {
        guard let connection = try connection(&state, &warnings) else { return nil }
        try settle(&state.owed, connection)
        return try work(connection)
      } catch {
        handle(error, &state, &warnings)
        if !error.isCorrupt || !changes { return nil }
      }
    }
    return nil
  }

  /// Removes what could not be removed before.
  private func settle(_ owed: inout OwedRemovals, _ connection: DiskConnection) throws(DiskError) {
    if owed.isEmpty { return }
    if owed.isEverything { try connection.removeAll() } else { try connection.remove(owed.keys) }
    owed = OwedRemovals()
  }

  private func connection(
    _ state: inout State, _ warnings: inout [NetOptError]
  ) throws(DiskError) -> DiskConnection? {
    if let connection = state.connection {
      // Somebody may have removed the directory, or put another database in the place of a broken one.
      if connection.directory.databaseIdentity == connection.identity { return connection }
      state.connection = nil
    }
    do throws(DiskError) {
      let connection: DiskConnection
      let patience = state.isHeld ? 0 : patience
      do throws(DiskError) { connection = try connect(patience) } catch  where error.isCorrupt && changes {
        putAside(nil, error, &state, &warnings)
        connection = try connect(patience)
      }
      state.isHeld = false
      state.connection = connection
      return connection
    } catch {
      if error.isBusy { throw error }
      isUnusable(error, &state, &warnings)
      return nil
    }
  }

  /// Leaves the directory alone for a while. Who mends it need not start the process anew.
  private func isUnusable(_ error: DiskError, _ state: inout State, _ warnings: inout [NetOptError]) {
    state.restsUntil = SystemTimeSource().now() + rest * 12
    report(
      .unusable, error,
      changes ? "nothing is cached on disk until that is mended" : "nothing is found there", &state, &warnings
    )
  }

  /// - Parameter patience: for who has the directory.
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
      putAside(identity, error, &state, &warnings)
    } else if case .database(let cause) = error, cause.isMoved {
      state.connection = nil
    } else if error.isBusy {
      // Another process writes: this entry is not kept, and the next ones do not wait for it one by one.
      state.restsUntil = SystemTimeSource().now() + rest
      // Who writes is soon done; who has the directory itself for so long is not.
      if case .locked = error {
        state.isHeld = true
        report(.locked, error, "nothing is cached on disk until it lets go", &state, &warnings)
      }
    } else {
      let consequence = changes ? "what is fetched meanwhile is not cached on disk" : "nothing is found there"
      report(.failed, error, consequence, &state, &warnings)
    }
  }

  /// Puts a broken database aside, so that the next use begins a new one.
  private func putAside(
    _ identity: DiskDirectory.Identity?, _ error: DiskError, _ state: inout State,
    _ warnings: inout [NetOptError]
  ) {
    do throws(DiskError) {
      let directory = try DiskDirectory(directory, mayCreate: true)
      guard try directory.setAside(identity ?? directory.databaseIdentity, patience: patience) else { return }
      report(.broken, error, "it is now \(directory.broken), and a new one is begun", &state, &warnings)
    } catch {
      if error.isBusy { handle(error, &state, &warnings) } else { isUnusable(error, &state, &warnings) }
    }
  }

  private func report(
    _ fault: Fault, _ error: DiskError, _ consequence: String, _ state: inout State,
    _ warnings: inout [NetOptError]
  ) {
    if state.said.insert(fault).inserted { warnings.append(error.netOptError(consequence)) }
  }
}
