import NetOptCaching
import NetOptCore
import NetOptLocking

/// The cache of a client, which all its calls share. Safe from any thread.
final class ResponseCache: Sendable {
  private struct State {
    /// The bytes of unfinished bodies that the cache keeps until their end.
    var pending = 0
    var work: [UInt64: Task<Void, Never>] = [:]
    /// The number of background refreshes per origin.
    var refreshes: [Origin: Int] = [:]
    var lastWork: UInt64 = 0
    var isStopped = false
  }

  let store: TieredStore
  let policy: CachePolicy
  let options: CacheOptions
  let entryLimit: Int
  /// The request fields that carry credentials.
  let credentialFields: CredentialFields
  /// The text that separates the entries of this client from those of other clients with the same directory;
  /// empty when the client needs no separation.
  let trust: String
  /// The `User-Agent` of requests whose caller sets none.
  let userAgent: String
  let inFlightFetches: InFlightFetches
  let changes = ResourceChanges()
  let timeSource: any TimeSource
  /// The clock of the cache, in milliseconds since 1970.
  let now: @Sendable () -> Int64
  private let signing: ClientConfiguration.Signing?
  /// The proxies that requests use.
  let proxies: ProxyChoice
  private let pendingLimit: Int
  private let state = Locked(State())

  /// - Parameters:
  ///   - signing: how the client signs requests. A signer sees other responses than a caller without a
  ///     signature.
  ///   - proxies: the proxies that requests use. A proxy with a user name may answer each user differently.
  ///   - trust: the text that separates the entries of this client from those of other clients with the same
  ///     directory (`Cache.trust`).
  ///   - userAgent: the `User-Agent` of requests whose caller sets none.
  ///   - trustedKeys: the keys that may sign seed packs; with no keys the cache does not check signatures.
  ///   - changes: whether the cache may change the directory, and create it if it does not exist.
  ///   - warn: receives errors of the directory and of files of seed packs.
  /// - Throws: `unreadableFile`, `invalidSignature` for a seed pack.
  init(
    _ configuration: ClientConfiguration.Cache, _ timeSource: any TimeSource,
    signing: ClientConfiguration.Signing? = nil, proxies: ProxyChoice, trust: String = "",
    userAgent: String = "",
    trustedKeys: [MinisignPublicKey] = [],
    changes: Bool = true,
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
          directory, limits: limits(configuration.maxDiskBytes), changes: changes, now: configuration.now,
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
    self.trust = trust
    self.userAgent = userAgent
    pendingLimit = configuration.maxPendingBytes
    self.signing = signing
    self.proxies = proxies
    now = configuration.now
    self.timeSource = timeSource
    inFlightFetches = InFlightFetches(timeSource)
  }

  private static func seedPack(
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

  /// The identity of the key and scheme that sign requests to a host; `nil` when the client does not sign
  /// them.
  func signer(for host: String) -> String? {
    guard let signing, signing.hosts.contains(host) else { return nil }
    return signing.signer.identity
  }

  // MARK: Entries

  /// How long a call waits for the disk: at most half of its remaining time, so that enough time is left for
  /// the origin, and at most `DiskCache.patience`.
  func patience(until deadline: MonotonicInstant?) -> Duration {
    deadline.map { min(max(($0 - timeSource.now()) / 2, .zero), DiskCache.patience) } ?? DiskCache.patience
  }

  /// The entries of a key, when memory alone can answer; `nil` when the disk or a seed pack may have more.
  func entriesInMemory(for key: CacheKey) -> [CacheEntry]? {
    let found = store.memory.entries(for: key)
    return store.seeds.isEmpty && (store.disk == nil || !found.isEmpty) ? found : nil
  }

  /// Stores an entry, unless a response to a later request has been stored meanwhile (RFC 9111, section 4:
  /// the most recent).
  ///
  /// - Parameters:
  ///   - count: the number of changes of the resource at the time of the request.
  ///   - begun: when the request was sent.
  func insert(_ entry: CacheEntry, unlessChangedSince count: UInt32, begun: MonotonicInstant) {
    let left = entry.terms.freshness.lifetime - entry.terms.freshness.initialAge
    // An entry that is stale on arrival is stored for revalidation. How long it is of use is unknown, so
    // `ageLeft` is `nil`.
    let isRFC = entry.declaredExpiry == nil && entry.resourceVersion == nil && left > 0
    let isStored = changes.storeUnlessOvertaken(entry.key, entry.selectors, since: count, begun: begun) {
      store.insert(entry, ageLeft: isRFC ? .milliseconds(left) : nil)
    }
    // A fetch that began earlier brings an older response. Calls that begin from now on must not share it.
    inFlightFetches.forget(entry.key)
    if !isStored { store.removeAll(for: entry.key) }
  }

  /// The stored responses to forget.
  enum ForgetScope {
    /// The responses that a response with these selectors would replace (`CacheEntry.overlaps`).
    case overlapping([CacheEntry.Selector])
    /// All responses of the key.
    case all
  }

  /// Forgets stored responses after a response that replaces them but is not stored. For example, the
  /// resource is elsewhere, gone, forbidden, or must not be stored any more.
  ///
  /// - Parameters:
  ///   - scope: the stored responses to forget.
  ///   - begun: when the fetch of the new response began. Responses to fetches that began earlier are no
  ///     longer stored.
  func forget(_ scope: ForgetScope, for key: CacheKey, begun: MonotonicInstant) {
    // The new response is recorded before the removal, so that `insert` refuses older responses from then on.
    changes.recordUnstoredResponse(for: key, begun: begun)
    inFlightFetches.forget(key)
    switch scope {
    case .overlapping(let selectors): store.remove(key) { $0.overlaps(selectors) }
    case .all: store.removeAll(for: key)
    }
  }

  // MARK: Unfinished bodies

  /// The bytes of bodies that the cache keeps until their end, or until their reader releases them.
  var pendingBytes: Int { state.withLock(\.pending) }

  /// Reserves memory for bytes of an unfinished body.
  ///
  /// - Returns: false when all unfinished bodies together would exceed the limit.
  func reserve(_ count: Int) -> Bool {
    state.withLock { state in
      guard count <= pendingLimit - state.pending else { return false }
      state.pending += count
      return true
    }
  }

  /// Releases reserved memory.
  func release(_ count: Int) {
    if count > 0 { state.withLock { $0.pending -= count } }
  }

  // MARK: Background work

  /// Runs work in the background. A shutdown of the client cancels the work and waits for its end.
  func inBackground(_ body: @escaping @Sendable () async -> Void) {
    state.withLock { state in
      guard !state.isStopped else { return }
      state.lastWork += 1
      let id = state.lastWork
      state.work[id] = Task { [weak self] in
        await body()
        self?.state.withLock { _ = $0.work.removeValue(forKey: id) }
      }
    }
  }

  /// The maximum number of concurrent refreshes per origin. A refresh is a request that no call waits for.
  /// Without a limit, a server that never answers would have one pending refresh for each of its stale
  /// responses. Beyond the limit a call gets the stale response, and a later call refreshes it.
  static let mostRefreshes = 64

  /// Takes one of the refreshes that an origin may have at once.
  ///
  /// - Returns: false when the origin already has `mostRefreshes`.
  func beginRefresh(of origin: Origin) -> Bool {
    state.withLock { state in
      guard state.refreshes[origin, default: 0] < Self.mostRefreshes else { return false }
      state.refreshes[origin, default: 0] += 1
      return true
    }
  }

  func endRefresh(of origin: Origin) {
    state.withLock { state in
      let count = state.refreshes[origin, default: 0] - 1
      state.refreshes[origin] = count > 0 ? count : nil
    }
  }

  /// Cancels the background work.
  func stop() {
    let work = state.withLock { state in
      state.isStopped = true
      return Array(state.work.values)
    }
    for task in work { task.cancel() }
  }

  /// Waits until the background work has ended and the entries are on the disk.
  func finish() async {
    // Each task removes itself from `work` before it ends.
    while case let work = state.withLock({ Array($0.work.values) }), !work.isEmpty {
      for task in work { await task.value }
    }
    await store.shutdown()
  }
}

extension ClientConfiguration {
  /// Makes the client's cache; `nil` without a cache configuration.
  func responseCache(_ timeSource: any TimeSource) throws(NetOptError) -> ResponseCache? {
    guard let cache else { return nil }
    let warningHandler = warningHandler
    return try ResponseCache(
      cache, timeSource, signing: signing, proxies: ProxyChoice(proxy),
      trust: try cache.trust(authorities: tls.caFile),
      userAgent: userAgent, trustedKeys: trustedKeys
    ) {
      warningHandler?($0)
    }
  }
}
