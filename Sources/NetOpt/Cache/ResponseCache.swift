import NetOptCaching
import NetOptCore
import NetOptLocking

/// What the calls of a client share in order to be answered from a cache. Safe from any thread.
final class ResponseCache: Sendable {
  private struct State {
    /// Bytes of bodies that are kept until their end.
    var pending = 0
    var work: [UInt64: Task<Void, Never>] = [:]
    /// How many stored responses of an origin are being fetched anew beside calls.
    var refreshes: [Origin: Int] = [:]
    var lastWork: UInt64 = 0
    var isStopped = false
  }

  let store: TieredStore
  let policy: CachePolicy
  let options: CacheOptions
  let entryLimit: Int
  /// The fields that carry credentials.
  let credentialFields: CredentialFields
  /// What tells its entries from those of clients that share its directory; empty for nothing.
  let trust: String
  /// What requests have in `User-Agent` when their caller sets none.
  let userAgent: String
  let flights: Flights
  let changes = ResourceChanges()
  let timeSource: any TimeSource
  /// The date: milliseconds since 1970.
  let now: @Sendable () -> Int64
  private let signing: ClientConfiguration.Signing?
  /// Which proxy requests go through; `nil` for none.
  let proxies: ProxyChoice?
  private let pendingLimit: Int
  private let state = Locked(State())

  /// - Parameters:
  ///   - signing: how requests are signed on their way: who signs sees other answers than who does not.
  ///   - proxies: which proxy requests go through: one with a user name may answer each user differently.
  ///   - trust: what tells its entries from those of clients that share its directory (`Cache.trust`).
  ///   - userAgent: what requests have in `User-Agent` when their caller sets none.
  ///   - trustedKeys: those who may sign seed packs; without any, signatures are not looked at.
  ///   - changes: whether the directory may be changed, and made when it is not there.
  ///   - warn: is told what goes wrong with the directory and with files of seed packs.
  /// - Throws: `unreadableFile`, `invalidSignature` for a seed pack.
  init(
    _ configuration: ClientConfiguration.Cache, _ timeSource: any TimeSource,
    signing: ClientConfiguration.Signing? = nil, proxies: ProxyChoice? = nil, trust: String = "",
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
    flights = Flights(timeSource)
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
            "\(name) is not signed, and only seed packs that a trusted key has signed are used; there is no \(name).minisig"
          )
        }
        _ = try MinisignSignature(signature, file: name + ".minisig").verify(index, of: name, by: trustedKeys)
      }, warn: warn)
  }

  /// What tells the key, and the scheme, that requests to a host are signed with from others; `nil` for none.
  func signer(for host: String) -> String? {
    guard let signing, signing.hosts.contains(host) else { return nil }
    return signing.signer.identity
  }

  // MARK: Entries

  /// How long a call waits for the disk: half of its time at most, so that the origin can still be asked.
  func patience(until deadline: MonotonicInstant?) -> Duration {
    deadline.map { min(max(($0 - timeSource.now()) / 2, .zero), DiskCache.patience) } ?? DiskCache.patience
  }

  /// The entries of a key, when memory says all there is to say.
  func entriesInMemory(for key: CacheKey) -> [CacheEntry]? {
    let found = store.memory.entries(for: key)
    return store.seeds.isEmpty && (store.disk == nil || !found.isEmpty) ? found : nil
  }

  /// Keeps an entry, unless a response to a later request has been stored meanwhile (RFC 9111, section 4: the most recent).
  ///
  /// - Parameters:
  ///   - count: how often its resource had been changed when it was asked for.
  ///   - begun: when its request was sent.
  func insert(_ entry: CacheEntry, unlessChangedSince count: UInt32, begun: MonotonicInstant) {
    let left = entry.terms.freshness.lifetime - entry.terms.freshness.initialAge
    // What was stale when it came is kept to be validated: for how long that is of use is not known.
    let isRFC = entry.declaredExpiry == nil && entry.resourceVersion == nil && left > 0
    let isStored = changes.unlessOvertaken(entry.key, entry.selectors, since: count, begun: begun) {
      store.insert(entry, ageLeft: isRFC ? .milliseconds(left) : nil)
    }
    // A fetch that began earlier brings an older answer. Calls that begin from now on must not share it.
    flights.leave(entry.key)
    if !isStored { store.removeAll(for: entry.key) }
  }

  /// Which stored responses are forgotten.
  enum Forgotten {
    /// What an answer with these selectors would replace (`CacheEntry.overlaps`).
    case overlapping([CacheEntry.Selector])
    /// All of the key.
    case all
  }

  /// An answer is not stored that replaces what is: its resource is elsewhere, gone, forbidden, or not to be stored any more.
  ///
  /// - Parameters:
  ///   - what: what it replaces.
  ///   - begun: when the answer's fetch began. What was asked for earlier and comes later is not stored.
  func forget(_ what: Forgotten, for key: CacheKey, begun: MonotonicInstant) {
    // In this order: what is stored between the two knows that it was overtaken.
    changes.answered(key, begun: begun)
    flights.leave(key)
    switch what {
    case .overlapping(let selectors): store.remove(key) { $0.overlaps(selectors) }
    case .all: store.removeAll(for: key)
    }
  }

  // MARK: Bodies on their way

  /// How many bytes are kept of bodies that are on their way, or whose reader has not let go of them.
  var pendingBytes: Int { state.withLock(\.pending) }

  /// Takes room for bytes of a body that is kept until its end.
  func reserve(_ count: Int) -> Bool {
    state.withLock { state in
      guard count <= pendingLimit - state.pending else { return false }
      state.pending += count
      return true
    }
  }

  /// Gives room back.
  func release(_ count: Int) {
    if count > 0 { state.withLock { $0.pending -= count } }
  }

  // MARK: Work beside calls

  /// Does something beside the calls. When the client is shut down it is cancelled and waited for.
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

  /// The most refreshes of an origin's responses at once. A refresh is a request that no call waits for. Without a limit, a server that answers none
  /// would have one for each of its stale responses. Beyond the limit a call gets the stale response, and a later call refreshes it.
  static let mostRefreshes = 64

  /// Takes one of the refreshes that an origin may have at once.
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

  /// Ends what is done beside calls.
  func stop() {
    let work = state.withLock { state in
      state.isStopped = true
      return Array(state.work.values)
    }
    for task in work { task.cancel() }
  }

  /// Returns when nothing is done beside calls any more, and what is stored is on the disk.
  func finish() async {
    // Each is taken out before it ends.
    while case let work = state.withLock({ Array($0.work.values) }), !work.isEmpty {
      for task in work { await task.value }
    }
    await store.shutdown()
  }
}

extension ClientConfiguration {
  /// The client's cache; `nil` without one.
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
