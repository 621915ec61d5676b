import FoundationEssentials
public import NetOptCore
import NetOptEngine
import NetOptLocking
public import NetOptRouting
import Synchronization

/// An HTTP client that sends each request straight to the fastest endpoint of a list of server IPs. When
/// these endpoints fail, it uses the addresses from DNS. Safe to use from any task; one client is enough for
/// a process.
///
/// Call `shutdown()` when you no longer need the client. A client that is deallocated without `shutdown()`
/// ends its calls and closes its connections in the background.
public final class NetOptClient: Sendable {
  /// The list in use now; `nil` without a list.
  public var list: EndpointList? { listInUse.list }
  /// The status of the list in use: its source, its serial, and its last refresh.
  public var listStatus: ListStatus { listInUse.status }
  /// The problem with the list in use; `nil` when there is none. When the list has expired, the problem is
  /// the expiry, and requests do not use the list. Otherwise it is `lastError` of `listStatus`.
  public var listWarning: NetOptError? { listInUse.warning(at: Date()) }
  /// An executor that runs tasks on the client's event loop. `Task(executorPreference: client.loopExecutor)`
  /// saves a thread switch per call. Use it only for tasks that make many calls. A task that computes or
  /// blocks on this executor delays all transfers of the client.
  public let loopExecutor: any TaskExecutor

  private let engine: Engine
  /// Holds the route planner, and tells it the results of requests and probes.
  let router: Router
  /// Probes endpoints of the list.
  private let prober: Prober
  /// Keeps the rankings of networks and saves them.
  private let ranking: RankingMemory
  let backgroundProbes: BackgroundProbes
  /// What the transport has counted; `nil` for a transport of the program that counts nothing.
  var transportCounts: TransportCounts? { engine.transport.counts }
  /// How many samples of probes ended in each way.
  var probeCounts: ProbeCounts { prober.counts.withLock { $0 } }
  /// Counts the client's calls.
  let callMetrics: CallMetrics
  /// Gives calls their spans; `nil` when the client exports no traces.
  private let tracer: Tracer?
  /// Exports the spans; `nil` when the client exports no traces.
  let spanExporter: SpanExporter?
  /// The state that all calls share for retries and hedges.
  private let retries: Retries
  private let listInUse: ListInUse
  /// Keeps the list up to date; `nil` without a list.
  private let updater: ListUpdater?
  /// The response cache; `nil` without one. `cache` is the program's handle to it.
  let responseCache: ResponseCache?
  /// Removes responses from the client's cache, and says how the cache is used; `nil` when the configuration
  /// has no cache.
  public var cache: ClientCache? { responseCache.map { ClientCache($0, callMetrics) } }
  /// The outermost interceptor.
  private let events: EventInterceptor
  /// The chain of the other interceptors, outermost first.
  private let links: [any Interceptor]
  /// Knows which redirects the client follows.
  let redirect: RedirectInterceptor
  /// The monotonic clock.
  private let timeSource: any TimeSource
  /// The number of the last call.
  private let lastID = Atomic<UInt64>(0)
  /// The calls that have not returned.
  let calls = CallsUnderWay()
  /// The calls that wait for code of the program or for a disk.
  private let waits: BoundedWaits
  /// The settings for requests that do not set them: the time limit, header fields and the base URL.
  let defaults: ClientConfiguration.Defaults
  /// Whether `defaults` can change a request that `execute` gets. False for nearly all clients.
  private let hasDefaults: Bool

  /// Makes a client, and starts to probe the endpoints of the list.
  ///
  /// - Throws: `invalidList`, `invalidSignature` or `unreadableFile` for the list or a seed pack;
  ///   `invalidConfiguration` for an invalid setting and for a file of certificate authorities that
  ///   cannot be read; `libraryFailed` when the system provides no descriptor or thread.
  public convenience init(_ configuration: ClientConfiguration = ClientConfiguration()) throws(NetOptError) {
    let configuration = try configuration.checked()
    let start = try configuration.startList()
    try configuration.checkAuthorityFiles()
    let identities = LoadedTLS.files(of: configuration.tls).map { FileIdentity($0) }
    let tls = try LoadedTLS(configuration.tls)
    let pins = start.choice?.list.pins ?? [:]
    let cache = try configuration.responseCache(tls.with(listPins: pins), SystemTimeSource())
    let loop = try EventLoop()
    do throws(NetOptError) {
      let router = Router(start.choice?.list, configuration)
      let resolver = try CachingResolver(loop, ResolverConfiguration(configuration.dns))
      let waits = WaitWatch(router)
      let transport = try CurlTransport(
        CurlConfiguration(configuration, tls, start.choice?.list),
        legs: RankedLegs(resolver: resolver, router: router), waitObserver: waits, loop: loop)
      let trustChanges = TrustChanges(configuration, tls, start.choice?.list, transport, cache)
      trustChanges.start(on: loop, known: identities)
      let engine = Engine(
        transport: transport, resolver: resolver, loop: loop, waits: waits, trustChanges: trustChanges)
      for warning in CurlLibrary.warnings { configuration.warningHandler?(warning) }
      self.init(configuration, start, router, engine, cache, SystemTimeSource())
    } catch {
      loop.stop()
      throw error
    }
  }

  /// Makes a client with the given transport and resolver, for tests and simulations. The client shuts both
  /// down when it shuts down. Measurements of this client say nothing about this machine's network, so the
  /// client saves its ranking only in a directory that the configuration names.
  ///
  /// - Throws: `invalidList`, `invalidSignature` or `unreadableFile` for the list, `invalidConfiguration` for
  ///   a setting out of range.
  package convenience init(
    _ configuration: ClientConfiguration, transport: any Transport, resolver: any Resolver,
    timeSource: any TimeSource = SystemTimeSource()
  ) throws(NetOptError) {
    var configuration = try configuration.checked()
    if configuration.rankingHistory == .stateDirectory { configuration.rankingHistory = .none }
    let start = try configuration.startList()
    let engine = Engine(transport: transport, resolver: resolver, loop: nil)
    let router = Router(start.choice?.list, configuration, timeSource)
    let cache = try configuration.responseCache(try LoadedTLS(configuration.tls), timeSource)
    self.init(configuration, start, router, engine, cache, timeSource)
  }

  private init(
    _ configuration: ClientConfiguration, _ start: ListStart, _ router: Router, _ engine: Engine,
    _ cache: ResponseCache?, _ timeSource: any TimeSource
  ) {
    self.router = router
    self.engine = engine
    self.timeSource = timeSource
    defaults = configuration.defaults
    hasDefaults = !defaults.headers.isEmpty || defaults.timeout != RequestOptions.usualTimeout
    let waits = BoundedWaits(timeSource)
    self.waits = waits
    let network = NetworkFingerprint.current
    ranking = RankingMemory(router, configuration, network: network, timeSource)
    loopExecutor = engine.loop.map { LoopTaskExecutor($0) } ?? globalConcurrentExecutor
    var probing = configuration.probing
    if case .builtIn = configuration.list { probing.includesUnusedHosts = false }
    let prober = Prober(
      router, engine, start.choice?.list, known: ranking.restore(), probing, timeSource)
    self.prober = prober
    backgroundProbes = BackgroundProbes(router, prober, ranking, configuration.probing, timeSource)
    callMetrics = CallMetrics(timeSource)
    retries = Retries(timeSource, observers: configuration.observers + [callMetrics])
    engine.waits?.start(prober, retries, probes: configuration.probing.inBackground)
    var links: [any Interceptor] = []
    var redirect = RedirectInterceptor(
      credentialFields: (configuration.cache ?? ClientConfiguration.Cache()).credentials(orUsual: true),
      trustingHosts: configuration.authorization.reduce(configuration.signing?.hosts ?? []) {
        $0.union($1.hosts)
      }, cacheOptions: cache?.options)
    // A refresh of the list has no cookies.
    let refreshRedirect = redirect
    redirect.cookieHosts = configuration.cookieHosts
    self.redirect = redirect
    let spans = SpanQueue()
    let tracer = configuration.telemetry.map {
      Tracer(sampledShare: $0.sampledShare, spans, timeSource)
    }
    self.tracer = tracer
    let observation = CallObservation(configuration.observers, callMetrics, tracer)
    events = EventInterceptor(observation: observation, redirect: redirect)
    links += configuration.interceptors
    // Only an interceptor can change the time limit of a call.
    if !configuration.interceptors.isEmpty { links.append(TimeoutInterceptor()) }
    if !configuration.authorization.isEmpty {
      links.append(AuthorizationInterceptor(configuration.authorization, waits))
    }
    let cookies =
      configuration.cookieHosts.isEmpty ? nil : CookieInterceptor(hosts: configuration.cookieHosts)
    responseCache = cache
    if let signing = configuration.signing, case let commands = SecretCommands(signing.signer, timeSource),
      commands.isNeeded
    {
      links.append(SecretInterceptor(hosts: signing.hosts, commands: commands))
    }
    if let cache {
      if let cookies {
        links.append(CookiePartitionInterceptor(cookies: cookies, cacheOptions: cache.options))
      }
      links.append(CacheInterceptor(cache: cache))
    }
    let route = RouteInterceptor(
      router: router, prober: prober, backgroundProbes: backgroundProbes, transport: engine.transport)
    var ofAttempts: [any Interceptor] = []
    if let cookies { ofAttempts.append(cookies) }
    if let tracer { ofAttempts.append(TraceInterceptor(tracer: tracer)) }
    if let signing = configuration.signing {
      ofAttempts.append(SigningInterceptor(signing, timeSource, waits))
    }
    var first = route
    if !ofAttempts.isEmpty {
      first.transport = nil
      ofAttempts.append(TransportInterceptor(transport: engine.transport))
    }
    links.append(RetryInterceptor(retries: retries, route: first))
    links += ofAttempts
    self.links = links
    // A refresh of the list and an export of spans are not calls of the program. The updater and the exporter
    // repeat their requests themselves. These requests neither wait for probes nor start background probes.
    var refreshRoute = route
    refreshRoute.countsAsUse = false
    let ownLinks: [any Interceptor] = [refreshRedirect, refreshRoute]
    let perform = { @Sendable (request: NetOptRequest) async throws(NetOptError) -> NetOptResponse in
      let started = timeSource.now()
      let deadline = request.options.timeout.map { started + $0 }
      return try await InterceptorChain(
        ownLinks, context: CallContext(id: 0, started: started, deadline: deadline)
      ).proceed(request)
    }
    (listInUse, updater) = ListUpdater.updates(
      configuration, start, router, prober, engine, timeSource, perform: perform)
    spanExporter = configuration.telemetry.map { [warn = configuration.warningHandler] in
      SpanExporter($0, spans, warn: { warn?($0) }, perform: perform)
    }
    if let loop = engine.loop {
      let transition = NetworkTransition(
        transport: engine.transport, resolver: engine.resolver, ranking: ranking, prober: prober,
        retries: retries)
      let monitor = NetworkMonitor(loop, network: network) { transition.perform($0) }
      engine.begin(monitor)
    }
    prober.start()
    spanExporter?.start()
    updater?.start(on: engine.loop, identities: start.identities)
  }

  deinit {
    stopBackgroundWork()
    spanExporter?.stop()
    if let responseCache { Task { await responseCache.finish() } }
    engine.shutDownLater(ranking)
  }

  /// Performs a request, and returns when the head of the response has arrived. Read the body from the
  /// response. Releasing a response before the end of its body cancels the transfer, except over HTTP/1.1 if
  /// at most 64 KiB are left and arrive within 100 ms: then the connection can be used again. Cancelling the
  /// task cancels the call, which then throws `cancelled`.
  ///
  /// - Throws: `NetOptError`. Its `route` lists every connection that was tried, its `otherAttempts` the
  ///   earlier attempts of the call.
  public func execute(_ request: NetOptRequest) async throws(NetOptError) -> NetOptResponse {
    var request = request.withContentFields
    if hasDefaults { request = withDefaults(request) }
    let chain = try call(request)
    defer { calls.end() }
    return try await events.intercept(request, next: chain)
  }

  /// Gives a call its number, start and deadline. Not inlined: its local variables would enlarge the frame of
  /// every waiting call.
  ///
  /// - Throws: `shutDown` when the client takes no more calls.
  @inline(never)
  private func call(_ request: NetOptRequest) throws(NetOptError) -> InterceptorChain {
    guard calls.begin() else { throw .shutDown }
    let started = timeSource.now()
    var context = CallContext(
      id: lastID.wrappingAdd(1, ordering: .relaxed).newValue, started: started,
      deadline: request.options.timeout.map { started + $0 })
    context.trace = tracer?.trace(of: request)
    return InterceptorChain(links, context: context)
  }

  /// Adds the defaults to a request.
  @inline(never)
  private func withDefaults(_ request: NetOptRequest) -> NetOptRequest {
    var request = request.adding(defaults.headers)
    if !request.options.hasTimeout, defaults.timeout != RequestOptions.usualTimeout {
      request.options.timeout = defaults.timeout
    }
    return request
  }

  /// Probes endpoints of the list now, and returns their ranking. Each sample opens a new connection, except
  /// a sample with `icmp`, which opens none.
  ///
  /// - Parameters:
  ///   - hosts: names of hosts in the list; `nil` for all hosts.
  ///   - method: the probe method; `nil` for the configured method.
  /// - Throws: `invalidRequest` for a name that is not in the list.
  public func probe(hosts: [String]? = nil, method: ProbeMethod? = nil) async throws(NetOptError)
    -> [HostProbe]
  {
    guard !calls.isClosed else { throw .shutDown }
    return try await prober.probe(hosts: hosts, method: method)
  }

  /// Resolves a host name in the same way as a request does.
  ///
  /// - Parameter fresh: whether to ignore cached responses of DNS.
  /// - Throws: `nameNotFound`, `resolverFailed`.
  package func resolve(_ host: String, fresh: Bool = false) async throws(NetOptError) -> ResolvedAddresses {
    try await engine.resolver.resolve(Origin.normalized(host: host), fresh: fresh)
  }

  /// Fetches the newest list now, from the URL in the `refresh` of the list in use. If a refresh is already
  /// running, this call waits for its end.
  ///
  /// - Returns: the status of the list in use after the refresh.
  /// - Throws: the reason why the refresh brought no good list; the list in use then stays in use.
  ///   `invalidConfiguration` when there is no list, or when the list names no URL.
  @discardableResult
  public func refreshList() async throws(NetOptError) -> ListStatus {
    guard let updater else {
      throw NetOptError(.invalidConfiguration, phase: .list, "the client has no IP list to refresh")
    }
    try await updater.refresh()
    return listStatus
  }

  /// Opens connections to hosts ahead of requests, along the route that a request would take now. The
  /// connections complete TCP and TLS. Over HTTP/2 the next request to the host then needs no handshake. The
  /// client closes an HTTP/1.1 connection again, but keeps its TLS session for resumption.
  ///
  /// - Parameters:
  ///   - hosts: host names. For a host that is not in the list, the client connects with `https` on its
  ///     default port.
  ///   - limit: the time limit for all hosts together. Default: 10 s.
  /// - Returns: the error for each host whose connection failed; empty when all connections are ready.
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
    guard !calls.isClosed else { throw .shutDown }
    let origin = router.usedOrigin(of: host) ?? Origin(.https, host: host)
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
      backgroundProbes.recheckDueTimes()
    }
    do throws(NetOptError) {
      router.record(try await engine.transport.warmUp(request, along: plan, in: context), started: started)
    } catch {
      if let route = error.route { router.record(route, started: started) }
      throw error
    }
  }

  /// Shuts the client down: running calls fail with `shutDown`, and the client closes its connections and
  /// ends its thread. Afterwards the client has no descriptors and no threads. A second call waits for the
  /// same shutdown to end.
  ///
  /// First, the client exports the spans of calls that have ended, for at most 2 s. The spans of running
  /// calls are lost, so use `shutdown(draining:)` with `ClientConfiguration.telemetry`.
  public func shutdown() async {
    calls.close()
    stopBackgroundWork()
    await spanExporter?.finish()
    await engine.shutDown(ranking)
    await responseCache?.finish()
  }

  /// Ends the work that requests do not need, takes no more calls, and waits until all calls have returned
  /// and all bodies have been read or released. Returns earlier when the task is cancelled.
  func drain() async {
    updater?.stop()
    backgroundProbes.stop()
    prober.stop()
    responseCache?.stopRefreshes()
    await calls.drain()
    await engine.transport.drain()
  }

  private func stopBackgroundWork() {
    updater?.stop()
    backgroundProbes.stop()
    // Calls that wait for a retry fail.
    retries.stop()
    waits.stop()
    responseCache?.stop()
    prober.stop()
  }
}
