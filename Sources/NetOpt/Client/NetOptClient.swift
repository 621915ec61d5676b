import FoundationEssentials
public import NetOptCore
import NetOptEngine
import NetOptLocking
public import NetOptRouting
import Synchronization

/// An HTTP client that sends each request straight to the fastest of a list of server IPs, and over DNS when they
/// fail. Safe to use from any task; one client is enough for a process.
///
/// Call `shutdown()` when it is done with. A client that is let go without it ends its calls and closes its
/// connections in the background.
public final class NetOptClient: Sendable {
  /// The list in use at this moment, or `nil`.
  public var list: EndpointList? { listInUse.list }
  /// Which list is in use, where it is from, and how it is kept up to date.
  public var listStatus: ListStatus { listInUse.status }
  /// What is wrong with the list although it is in use: that it has expired, so that direct mode is off; else that it
  /// could not be refreshed or read again the last time.
  public var listWarning: NetOptError? { listInUse.warning(at: Date()) }
  /// Runs tasks on the client's event loop, between its other work: `Task(executorPreference: client.loopExecutor)`
  /// saves a change of threads per call. Only for tasks that make many calls and neither compute nor block.
  public let loopExecutor: any TaskExecutor

  private let engine: Engine
  private let router: Router
  private let prober: Prober
  private let ranking: RankingMemory
  let upkeep: Upkeep
  private let retries: Retries
  private let listInUse: ListInUse
  private let updater: ListUpdater?
  /// The cache, when there is one.
  let cache: ResponseCache?
  private let links: [any Interceptor]
  private let timeSource: any TimeSource
  private let lastID = Atomic<UInt64>(0)

  /// Makes a client, and starts probing the list's endpoints.
  ///
  /// - Throws: `invalidList`, `invalidSignature` or `unreadableFile` for the list or a seed pack, `invalidConfiguration` for a setting that makes no
  ///   sense and for authorities that cannot be read, `libraryFailed` when the system gives no descriptor or thread.
  public convenience init(_ configuration: ClientConfiguration = ClientConfiguration()) throws(NetOptError) {
    try configuration.checkValues()
    let start = try configuration.startList()
    try configuration.checkAuthorities()
    let cache = try configuration.responseCache(SystemTimeSource())
    let loop = try EventLoop()
    do throws(NetOptError) {
      let router = Router(start.choice?.list, configuration)
      let resolver = try CachingResolver(loop, ResolverConfiguration(configuration.dns))
      let waits = WaitWatch(router)
      let transport = try CurlTransport(
        CurlConfiguration(configuration), legs: RankedLegs(resolver: resolver, router: router), waits: waits,
        loop: loop)
      let engine = Engine(transport: transport, resolver: resolver, loop: loop, waits: waits)
      for warning in CurlLibrary.warnings { configuration.warningHandler?(warning) }
      self.init(configuration, start, router, engine, cache, SystemTimeSource())
    } catch {
      loop.stop()
      throw error
    }
  }

  /// Makes a client on a transport and a resolver of one's own, for tests and simulations. They are shut down with
  /// the client. What it learns is nothing about the network that this machine is in: a ranking is kept only in a directory
  /// that the configuration names.
  ///
  /// - Throws: `invalidList`, `invalidSignature` or `unreadableFile` for the list, `invalidConfiguration` for a setting that makes
  ///   no sense.
  package convenience init(
    _ configuration: ClientConfiguration, transport: any Transport, resolver: any Resolver,
    timeSource: any TimeSource = SystemTimeSource()
  ) throws(NetOptError) {
    try configuration.checkValues()
    var configuration = configuration
    if configuration.rankingHistory == .stateDirectory { configuration.rankingHistory = .none }
    let start = try configuration.startList()
    let engine = Engine(transport: transport, resolver: resolver, loop: nil)
    let router = Router(start.choice?.list, configuration, timeSource)
    let cache = try configuration.responseCache(timeSource)
    self.init(configuration, start, router, engine, cache, timeSource)
  }

  private init(
    _ configuration: ClientConfiguration, _ start: ListStart, _ router: Router, _ engine: Engine,
    _ cache: ResponseCache?, _ timeSource: any TimeSource
  ) {
    self.router = router
    self.engine = engine
    self.timeSource = timeSource
    let network = NetworkFingerprint.current
    ranking = RankingMemory(router, configuration, network: network, timeSource)
    loopExecutor = engine.loop.map { LoopTaskExecutor($0) } ?? globalConcurrentExecutor
    let prober = Prober(
      router, engine, start.choice?.list, known: ranking.restore(), configuration.probing, timeSource)
    self.prober = prober
    upkeep = Upkeep(router, prober, ranking, configuration.probing, timeSource)
    retries = Retries(timeSource, observers: configuration.observers)
    engine.waits?.start(prober, retries, probes: configuration.probing.inBackground)
    var links: [any Interceptor] = []
    let redirect = RedirectInterceptor(
      credentialFields: (configuration.cache ?? ClientConfiguration.Cache()).credentials(orUsual: true),
      signedHosts: configuration.signing?.hosts ?? [], cacheOptions: cache?.options)
    links.append(
      configuration.observers.isEmpty
        ? redirect : EventInterceptor(observers: configuration.observers, redirect: redirect))
    links += configuration.interceptors
    self.cache = cache
    if let signing = configuration.signing, case let commands = SecretCommands(signing.signer, timeSource),
      commands.isNeeded
    {
      links.append(SecretInterceptor(hosts: signing.hosts, commands: commands))
    }
    if let cache { links.append(CacheInterceptor(cache: cache)) }
    let route = RouteInterceptor(router: router, prober: prober, upkeep: upkeep, transport: engine.transport)
    if let signing = configuration.signing {
      let last = TransportInterceptor(transport: engine.transport)
      var first = route
      first.transport = nil
      links.append(RetryInterceptor(retries: retries, route: first))
      links += [SigningInterceptor(signing, timeSource), last]
    } else {
      links.append(RetryInterceptor(retries: retries, route: route))
    }
    self.links = links
    // What keeps the list up to date is no call: it is tried again when its schedule says so, and keeps no probe going.
    var refreshRoute = route
    refreshRoute.isUse = false
    (listInUse, updater) = Self.updates(
      configuration, start, router, prober, [redirect, refreshRoute], timeSource)
    if let loop = engine.loop {
      let transition = NetworkTransition(
        transport: engine.transport, resolver: engine.resolver, ranking: ranking, prober: prober,
        retries: retries)
      let monitor = NetworkMonitor(loop, network: network) { transition.perform($0) }
      engine.begin(monitor)
    }
    if configuration.probing.atStart { prober.start() }
    updater?.start(on: engine.loop, identities: start.identities)
  }

  /// The list in use, and what keeps it up to date. Its requests are none of the caller's: they pass by the caller's
  /// interceptors and observers.
  private static func updates(
    _ configuration: ClientConfiguration, _ start: ListStart, _ router: Router, _ prober: Prober,
    _ links: [any Interceptor], _ timeSource: any TimeSource
  ) -> (ListInUse, ListUpdater?) {
    guard let choice = start.choice else { return (ListInUse(nil, ListStatus(source: .none)), nil) }
    var status = choice.status
    status.lastError = start.copyError
    if let url = choice.configured.list.refresh?.url {
      status.lastCheck = configuration.listStore?.record(of: url).checked
    }
    let inUse = ListInUse(choice.list, status)
    let updater = ListUpdater(
      configuration, choice, inUse, timeSource,
      adopt: { list in
        router.adopt(list)
        prober.adopt(list)
      },
      perform: { (request) throws(NetOptError) in
        let started = timeSource.now()
        let deadline = request.options.timeout.map { started + $0 }
        return try await InterceptorChain(
          links, context: CallContext(id: 0, started: started, deadline: deadline)
        ).proceed(request)
      })
    return (inUse, updater)
  }

  deinit {
    stopBackgroundWork()
    if let cache { Task { await cache.finish() } }
    engine.shutDownLater(ranking)
  }

  /// Performs a request, and returns when the head of the response is there. The body is read from the response; a
  /// response that is let go before its end cancels the transfer. Cancelling the task cancels the call.
  ///
  /// - Throws: `NetOptError`; its `route` has every connection that was tried, its `otherAttempts` what was sent before.
  public func execute(_ request: NetOptRequest) async throws(NetOptError) -> NetOptResponse {
    try await call(request).proceed(request)
  }

  /// Not inlined: what it needs room for would be kept by every call that waits.
  @inline(never)
  private func call(_ request: NetOptRequest) -> InterceptorChain {
    let started = timeSource.now()
    let context = CallContext(
      id: lastID.wrappingAdd(1, ordering: .relaxed).newValue, started: started,
      deadline: request.options.timeout.map { started + $0 })
    return InterceptorChain(links, context: context)
  }

  /// Probes endpoints of the list now, each over new connections, and returns their ranking.
  ///
  /// - Parameters:
  ///   - hosts: names of the list; `nil` for all.
  ///   - method: how; `nil` for what the configuration says.
  /// - Throws: `invalidRequest` for a name that the list does not have.
  public func probe(hosts: [String]? = nil, method: ProbeMethod? = nil) async throws(NetOptError)
    -> [HostProbe]
  {
    try await prober.probe(hosts: hosts, method: method)
  }

  /// Looks a name up the way requests do.
  ///
  /// - Parameter fresh: whether cached answers are passed over.
  /// - Throws: `nameNotFound`, `resolverFailed`.
  package func resolve(_ host: String, fresh: Bool = false) async throws(NetOptError) -> ResolvedAddresses {
    try await engine.resolver.resolve(Origin.normalized(host: host), fresh: fresh)
  }

  /// Looks for a newer list now, at the URL that the list in use names in `refresh`. When that is being done already, it
  /// waits for the end of it.
  ///
  /// - Returns: which list is in use afterwards.
  /// - Throws: why there was no good list; then the old one is in use. `invalidConfiguration` when the list names no URL.
  @discardableResult
  public func refreshList() async throws(NetOptError) -> ListStatus {
    guard let updater else {
      throw NetOptError(.invalidConfiguration, phase: .list, "there is no list that could be refreshed")
    }
    try await updater.refresh()
    return listStatus
  }

  /// Opens connections to hosts ahead of requests, each the way a request would go now: TCP and TLS are done, and over
  /// HTTP/2 the next request to the host goes out at once. A connection that speaks HTTP/1.1 is closed again, but its TLS
  /// session is kept to be resumed.
  ///
  /// - Parameters:
  ///   - hosts: names, of the list or others; what the list does not have is taken for `https` on its usual port.
  ///   - limit: how long all of it may take. Default: 10 s.
  /// - Returns: for each host that could not be made ready, why; empty when all are ready.
  @discardableResult
  public func warmUp(hosts: [String], within limit: Duration = .seconds(10)) async -> [String: NetOptError] {
    let deadline = timeSource.now() + limit
    return await withTaskGroup(of: (String, NetOptError?).self) { group in
      for host in Set(hosts) {
        group.addTask {
          do throws(NetOptError) {
            try await self.warmUp(host, until: deadline)
            return (host, nil)
          } catch {
            return (host, error)
          }
        }
      }
      return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
    }
  }

  private func warmUp(_ host: String, until deadline: MonotonicInstant) async throws(NetOptError) {
    let origin = list?.origin(of: host) ?? Origin(.https, host: host)
    if origin.address == nil, let fault = HTTPURL.hostNameFault(host) {
      throw NetOptError(.invalidRequest, phase: .resolve, fault)
    }
    let request = NetOptRequest(.head, HTTPURL(origin: origin, target: "/"))
    let started = timeSource.now()
    let context = CallContext(
      id: lastID.wrappingAdd(1, ordering: .relaxed).newValue, started: started, deadline: deadline)
    let plan = try router.plan(for: request, nil)
    defer {
      router.ended(plan)
      upkeep.lookAgain()
    }
    do throws(NetOptError) {
      router.record(try await engine.transport.warmUp(request, along: plan, in: context), started: started)
    } catch {
      if let route = error.route { router.record(route, started: started) }
      throw error
    }
  }

  /// Ends everything: calls that are under way fail with `shutDown`, connections are closed, the thread ends. After
  /// it no descriptor or thread of the client is left. Whoever calls it again waits for the same end.
  public func shutdown() async {
    stopBackgroundWork()
    await engine.shutDown(ranking)
    await cache?.finish()
  }

  private func stopBackgroundWork() {
    updater?.stop()
    upkeep.stop()
    // Whoever waits to be sent again is refused.
    retries.stop()
    cache?.stop()
    prober.stop()
  }
}

/// What a client runs on.
final class Engine: Sendable {
  let transport: any Transport
  let resolver: any Resolver
  let loop: EventLoop?
  /// What looks after requests that wait, on a transport of netopt's own.
  let waits: WaitWatch?
  /// The end, once it has begun.
  private let ending = Locked<Task<Void, Never>?>(nil)
  private let monitor = Locked<NetworkMonitor?>(nil)

  init(
    transport: any Transport, resolver: any Resolver, loop: EventLoop?, waits: WaitWatch? = nil
  ) {
    self.transport = transport
    self.resolver = resolver
    self.loop = loop
    self.waits = waits
  }

  /// Has changes of the network told until the end.
  func begin(_ monitor: NetworkMonitor) {
    self.monitor.withLock { $0 = monitor }
    monitor.start()
  }

  /// - Parameter ranking: is written.
  func shutDown(_ ranking: RankingMemory) async {
    await end(ranking).value
  }

  /// Shuts down without anyone to wait for it.
  func shutDownLater(_ ranking: RankingMemory) {
    _ = end(ranking)
  }

  /// Begins the end, unless it has begun.
  private func end(_ ranking: RankingMemory) -> Task<Void, Never> {
    ending.withLock { ending in
      if let ending { return ending }
      let monitor = monitor.withLock { $0.take() }
      let task = Task { [transport, resolver, loop] in
        await monitor?.stop()
        // Before the disk: whoever waits for an answer is told at once.
        await transport.shutdown()
        await resolver.shutdown()
        ranking.save()
        loop?.stop()
      }
      ending = task
      return task
    }
  }
}

extension CurlConfiguration {
  init(_ configuration: ClientConfiguration) {
    self.init()
    caFile = configuration.tls.caFile
    userAgent = configuration.userAgent
    connectionsPerEndpoint = configuration.connections.perEndpoint
    totalConnections = configuration.connections.total
    idleConnections = configuration.connections.idle
    idleAge = configuration.connections.idleAge
    lifetime = configuration.connections.lifetime
    bodyBuffer = configuration.connections.bodyBuffer
  }
}

extension ResolverConfiguration {
  init(_ configuration: ClientConfiguration.DNS) {
    self.init()
    servers = configuration.servers
    timeout = configuration.timeout
    tries = configuration.tries
  }
}
