import NetOptCaching
import NetOptCore
import NetOptLocking
import Synchronization

/// The cache of a client, which all calls of the client share. Safe from any thread.
final class ResponseCache: Sendable {
  private struct State {
    /// The total size in bytes of the unfinished bodies that the cache keeps.
    var pending = 0
    /// The running background tasks, by number.
    var work: [UInt64: Task<Void, Never>] = [:]
    /// The numbers of those tasks that refresh an entry.
    var refreshWork: Set<UInt64> = []
    /// Whether no more refreshes may begin.
    var refusesRefreshes = false
    /// The number of running background refreshes per origin.
    var refreshes: [Origin: Int] = [:]
    /// The number of the last background task.
    var lastWork: UInt64 = 0
    /// Whether `stop` was called.
    var isStopped = false
  }

  /// The stored responses in memory, on the disk and in seed packs.
  let store: TieredStore
  /// The rules of RFC 9111, for requests in `http` mode.
  let policy: CachePolicy
  /// The cache options of requests whose own options do not name any.
  let options: CacheOptions
  /// The maximum size in bytes of a body that the cache stores.
  let entryLimit: Int
  /// The request fields that carry credentials.
  let credentialFields: CredentialFields
  /// The settings on which partitions depend, and how often they have changed.
  private struct Settings {
    var digest: String
    var changes: UInt32 = 0
  }

  private let settings: Locked<Settings>
  /// The `User-Agent` of requests whose caller sets none.
  let userAgent: String
  /// The running fetches that further calls may share.
  let inFlightFetches: InFlightFetches
  /// The known changes and latest responses, which keep older responses out of the store.
  let changes = ResourceChanges()
  /// The number of responses stored so far. A response that a 304 confirmed counts again.
  let insertionCount = Atomic<Int>(0)
  /// The monotonic clock.
  let timeSource: any TimeSource
  /// The clock of the cache, in milliseconds since 1970.
  let now: @Sendable () -> Int64
  /// How the client signs requests; `nil` when it signs none.
  private let signing: ClientConfiguration.Signing?
  /// The proxies that requests use.
  let proxies: ProxyChoice
  /// The maximum of `pendingBytes`.
  private let pendingLimit: Int
  private let state = Locked(State())

  /// - Parameters:
  ///   - signing: how the client signs requests. The signer of a request is a part of its partition, because
  ///     a server may answer each signer differently.
  ///   - proxies: the proxies that requests use. The user of a proxy is a part of the partition, because a
  ///     proxy may answer each user differently.
  ///   - settingsDigest: the part of each partition that depends on the client's settings
  ///     (`ClientConfiguration.Cache.settingsDigest`).
  ///   - userAgent: the `User-Agent` of requests whose caller sets none.
  ///   - trustedKeys: the keys that may sign seed packs. With no keys the cache does not check signatures.
  ///   - mayChange: whether the cache may change files in the directory, and create the directory.
  ///   - warn: receives errors of the directory and of files of seed packs.
  /// - Throws: `unreadableFile` or `invalidSignature` for a seed pack.
  init(
    _ configuration: ClientConfiguration.Cache, _ timeSource: any TimeSource,
    signing: ClientConfiguration.Signing? = nil, proxies: ProxyChoice, settingsDigest: String = "",
    userAgent: String = "",
    trustedKeys: [MinisignPublicKey] = [],
    mayChange: Bool = true,
    warn: @escaping @Sendable (NetOptError) -> Void
  ) throws(NetOptError) {
    var seeds: [SeedPack] = []
    for directory in configuration.seedPacks {
      seeds.append(try Self.seedPack(directory, trustedKeys, warn))
    }
    let limits = { CacheLimits(maxBytes: $0, maxAge: configuration.maxAge) }
    let disk = configuration.directory.map { directory in
      DiskCache(
        DiskStore(
          directory, limits: limits(configuration.maxDiskBytes), mayChange: mayChange, now: configuration.now,
          warn: warn))
    }
    store = TieredStore(
      memory: MemoryStore(
        limits(configuration.maxBytes), heap: configuration.heap, now: configuration.now), disk: disk,
      seeds: seeds)
    for entry in configuration.entries.reversed() { store.memory.insert(entry) }
    policy = CachePolicy(staleWhenUnreachable: configuration.staleWhenUnreachable.wholeMilliseconds)
    options = configuration.options
    entryLimit = configuration.maxEntryBytes
    credentialFields = configuration.credentials()
    settings = Locked(Settings(digest: settingsDigest))
    self.userAgent = userAgent
    pendingLimit = configuration.maxPendingBytes
    self.signing = signing
    self.proxies = proxies
    now = configuration.now
    self.timeSource = timeSource
    inFlightFetches = InFlightFetches(timeSource)
  }

  /// The part of each partition that depends on the client's settings (`Cache.settingsDigest`); empty for the
  /// default settings.
  var settingsDigest: String { settings.withLock(\.digest) }

  /// How often `settingsDigest` has changed.
  var settingsChanges: UInt32 { settings.withLock(\.changes) }

  /// Changes `settingsDigest`, because a file of the TLS settings has changed. Responses to calls that began
  /// before are not stored: their partitions are those of the old settings, and their connections may have
  /// the new ones.
  func setSettings(_ digest: String) {
    settings.withLock {
      $0.digest = digest
      $0.changes &+= 1
    }
    changes.recordChangeOfAll()
    inFlightFetches.forgetAll()
  }

  /// Opens a seed pack, and checks the signature of its index if there are trusted keys.
  static func seedPack(
    _ directory: String, _ trustedKeys: [MinisignPublicKey], _ warn: @escaping @Sendable (NetOptError) -> Void
  ) throws(NetOptError) -> SeedPack {
    try SeedPack(
      directory,
      check: { (index, signature) throws(NetOptError) in
        guard !trustedKeys.isEmpty else { return }
        let name = directory + "/index.json"
        guard let signature else {
          throw NetOptError(
            .invalidSignature, phase: .cache,
            "\(name) is not signed, and netopt uses only seed packs signed by a trusted key; there is no \(name).minisig"
          )
        }
        _ = try MinisignSignature(signature, file: name + ".minisig").verify(index, of: name, by: trustedKeys)
      }, warn: warn)
  }

  /// The identity of the key and scheme that sign requests to a host; `nil` when the client signs no requests
  /// to this host.
  func signer(for host: String) -> String? {
    guard let signing, signing.hosts.contains(host) else { return nil }
    return signing.signer.identity
  }

  // MARK: Entries

  /// How long a call waits for a look-up on the disk: at most half of its remaining time, so that the other
  /// half is left for the origin, and at most `DiskCache.patience`.
  func patience(until deadline: MonotonicInstant?) -> Duration {
    deadline.map { min(max(($0 - timeSource.now()) / 2, .zero), DiskCache.patience) } ?? DiskCache.patience
  }

  /// The entries of a key in memory. `nil` when the call must also look elsewhere: when the client has seed
  /// packs, or has a disk cache and memory has no entry.
  func entriesInMemory(for key: CacheKey) -> [CacheEntry]? {
    let found = store.memory.entries(for: key)
    return store.seeds.isEmpty && (store.disk == nil || !found.isEmpty) ? found : nil
  }

  /// Stores an entry, unless a change of the resource, a removal by the program or the response to a later
  /// request has overtaken it. The cache must use the most recent response (RFC 9111, section 4). If the
  /// entry is overtaken, all stored responses of the key are forgotten. If it is unknown whether a removal
  /// concerns the entry, the entry is not stored, and the stored responses stay.
  ///
  /// - Parameters:
  ///   - count: the count of `ResourceChanges` for the key when the request was sent.
  ///   - removals: `ResourceChanges.removalCount` when the request was sent.
  ///   - begun: when the request was sent.
  func insert(
    _ entry: CacheEntry, unlessChangedSince count: UInt32, removals: UInt64, begun: MonotonicInstant
  ) {
    let left = entry.terms.freshness.lifetime - entry.terms.freshness.initialAge
    // `ageLeft` is the time for which the entry stays fresh by RFC 9111. For an entry with a declared expiry
    // or a version it is `nil`, because RFC 9111 does not decide about such an entry. For an entry that is
    // already stale it is `nil` too. The origin may validate a stale entry at any time, so it is unknown how
    // long the entry is useful.
    let isRFC = entry.declaredExpiry == nil && entry.resourceVersion == nil && left > 0
    let storage = changes.storeUnlessOvertaken(
      entry.key, entry.selectors, since: count, begun: begun,
      removal: { changes.removal(of: entry.key, entry.resource, since: removals) }
    ) {
      store.insert(entry, ageLeft: isRFC ? .milliseconds(left) : nil)
    }
    switch storage {
    case .stored: insertionCount.add(1, ordering: .relaxed)
    case .overtaken: store.removeAll(for: entry.key)
    case .unknown: break
    }
    // A fetch that began earlier brings an older response. Calls that begin from now on must not share it.
    inFlightFetches.forget(entry.key)
  }

  /// Which stored responses of a key to forget.
  enum ForgetScope {
    /// The responses that a response with these selectors would replace in the store (`CacheEntry.overlaps`).
    case overlapping([CacheEntry.Selector])
    /// All responses of the key.
    case all
  }

  /// Forgets stored responses that a new response has made outdated, although the new response is not stored.
  /// For example, the new response says that the resource is elsewhere, gone or forbidden.
  ///
  /// - Parameters:
  ///   - scope: the stored responses to forget.
  ///   - begun: when the fetch of the new response began. Responses to fetches that began earlier are no
  ///     longer stored.
  func forget(_ scope: ForgetScope, for key: CacheKey, begun: MonotonicInstant) {
    // The new response is recorded before the removal, so that `insert` refuses older responses from then on.
    changes.recordUnstoredResponse(for: key, begun: begun)
    switch scope {
    case .overlapping(let selectors): store.remove(key) { $0.overlaps(selectors) }
    case .all: store.removeAll(for: key)
    }
    // After the removal: until then the leader of a new fetch can find the removed response in memory, and
    // give it to all calls that join.
    inFlightFetches.forget(key)
  }

  /// Forgets the stored responses that the program removes. Afterwards no call that begins later gets a
  /// response that was stored, or whose fetch began, before the removal.
  func remove(_ selection: CacheSelection) async {
    // Recorded before the removal, so that `insert` refuses responses to earlier requests from then on.
    let removal = changes.beginRemoval(of: selection)
    await store.remove(selection)
    // See `forget` for the order.
    inFlightFetches.forget(selection)
    // Last: until then a call may find a removed response, or join a fetch of one. The removal counts as
    // later than this call. So the call does not ask the origin to confirm the response, and `insert` refuses
    // it.
    changes.endRemoval(removal)
  }

  // MARK: Unfinished bodies

  /// The total size in bytes of the unfinished bodies that the cache keeps. A body counts until its end, or
  /// until its reader releases it.
  var pendingBytes: Int { state.withLock(\.pending) }

  /// Adds bytes of an unfinished body to `pendingBytes`.
  ///
  /// - Returns: false when this would exceed the limit. Then nothing is added.
  func reserve(_ count: Int) -> Bool {
    state.withLock { state in
      guard count <= pendingLimit - state.pending else { return false }
      state.pending += count
      return true
    }
  }

  /// Subtracts reserved bytes from `pendingBytes`.
  func release(_ count: Int) {
    if count > 0 { state.withLock { $0.pending -= count } }
  }

  // MARK: Background work

  /// Runs a closure in a background task. `stop` cancels the task, and `finish` waits for its end. Does
  /// nothing after `stop`.
  ///
  /// - Parameter isRefresh: whether the closure refreshes an entry. `stopRefreshes` cancels such tasks, and after
  ///   it this method does nothing for them.
  func inBackground(isRefresh: Bool = false, _ body: @escaping @Sendable () async -> Void) {
    state.withLock { state in
      guard !state.isStopped, !(isRefresh && state.refusesRefreshes) else { return }
      state.lastWork += 1
      let id = state.lastWork
      if isRefresh { state.refreshWork.insert(id) }
      state.work[id] = Task { [weak self] in
        await body()
        self?.state.withLock { state in
          state.work[id] = nil
          state.refreshWork.remove(id)
        }
      }
    }
  }

  /// Cancels the background refreshes, and refuses new ones.
  func stopRefreshes() {
    let refreshes = state.withLock { state in
      state.refusesRefreshes = true
      return state.refreshWork.compactMap { state.work[$0] }
    }
    for task in refreshes { task.cancel() }
  }

  /// The maximum number of concurrent background refreshes per origin. Without a limit, a server that never
  /// answers would have one pending refresh for each of its stale responses. Beyond the limit, a call still
  /// gets the stale response, but nothing refreshes it until a later call.
  static let mostRefreshes = 64

  /// Counts a background refresh of an origin. The caller must call `endRefresh` once after a result of true.
  ///
  /// - Returns: false when the origin already has `mostRefreshes`, and after `stopRefreshes`.
  func beginRefresh(of origin: Origin) -> Bool {
    state.withLock { state in
      guard !state.refusesRefreshes, state.refreshes[origin, default: 0] < Self.mostRefreshes else {
        return false
      }
      state.refreshes[origin, default: 0] += 1
      return true
    }
  }

  /// Ends a refresh that `beginRefresh` has counted.
  func endRefresh(of origin: Origin) {
    state.withLock { state in
      let count = state.refreshes[origin, default: 0] - 1
      state.refreshes[origin] = count > 0 ? count : nil
    }
  }

  /// Cancels the background tasks, and refuses new ones.
  func stop() {
    let work = state.withLock { state in
      state.isStopped = true
      return Array(state.work.values)
    }
    for task in work { task.cancel() }
  }

  /// Waits until the background tasks have ended and the entries are on the disk, and closes the store.
  func finish() async {
    // Each task removes itself from `work` before it ends.
    while case let work = state.withLock({ Array($0.work.values) }), !work.isEmpty {
      for task in work { await task.value }
    }
    await store.shutdown()
  }
}

extension ClientConfiguration {
  /// Makes the client's cache; `nil` when the configuration has no cache.
  ///
  /// - Parameter tls: the TLS settings of the client.
  func responseCache(_ tls: LoadedTLS, _ timeSource: any TimeSource) throws(NetOptError) -> ResponseCache? {
    guard let cache else { return nil }
    let warningHandler = warningHandler
    return try ResponseCache(
      cache, timeSource, signing: signing, proxies: ProxyChoice(proxy),
      settingsDigest: try cache.settingsDigest(tls),
      userAgent: userAgent, trustedKeys: trustedKeys
    ) {
      warningHandler?($0)
    }
  }
}
