import FoundationEssentials
public import NetOptCore
import NetOptCurl
import NetOptEventLoop
import NetOptLocking
import NetOptResolver
public import NetOptRouting
import Synchronization

/// An HTTP client that sends each request straight to the fastest of a list of server IPs, and over DNS when they
/// fail. Safe to use from any task; one client is enough for a process.
///
/// Call `shutdown()` when it is done with. A client that is let go without it ends its calls and closes its
/// connections in the background.
public final class NetOptClient: Sendable {
  /// The list in use, or `nil`.
  public let list: EndpointList?
  /// What is wrong with the list although it is in use: that it has expired, so that direct mode is off.
  public let listWarning: NetOptError?
  /// Runs tasks on the client's event loop, between its other work: `Task(executorPreference: client.loopExecutor)`
  /// saves a change of threads per call. Only for tasks that make many calls and neither compute nor block.
  public let loopExecutor: any TaskExecutor

  private let engine: Engine
  private let router: Router
  private let prober: Prober
  private let links: [any Interceptor]
  private let timeSource: any TimeSource
  private let lastID = Atomic<UInt64>(0)

  /// Makes a client, and starts probing the list's endpoints.
  ///
  /// - Throws: `invalidList` or `unreadableFile` for the list, `invalidConfiguration` for a setting that makes no
  ///   sense and for authorities that cannot be read, `libraryFailed` when the system gives no descriptor or thread.
  public convenience init(_ configuration: ClientConfiguration = ClientConfiguration()) throws(NetOptError) {
    let (list, warning) = try configuration.loadList()
    try configuration.checkAuthorities()
    let loop = try EventLoop()
    do throws(NetOptError) {
      let router = Router(list, configuration)
      let resolver = try CachingResolver(loop, ResolverConfiguration(configuration.dns))
      let transport = try CurlTransport(
        CurlConfiguration(configuration), legs: RankedLegs(resolver: resolver, router: router), loop: loop)
      let engine = Engine(transport: transport, resolver: resolver, loop: loop)
      self.init(configuration, list, warning, router, engine, SystemTimeSource())
    } catch {
      loop.stop()
      throw error
    }
  }

  /// Makes a client on a transport and a resolver of one's own, for tests and simulations. They are shut down with
  /// the client.
  ///
  /// - Throws: `invalidList` or `unreadableFile` for the list.
  public convenience init(
    _ configuration: ClientConfiguration, transport: any Transport, resolver: any Resolver,
    timeSource: any TimeSource = SystemTimeSource()
  ) throws(NetOptError) {
    let (list, warning) = try configuration.loadList()
    let engine = Engine(transport: transport, resolver: resolver, loop: nil)
    self.init(configuration, list, warning, Router(list, configuration, timeSource), engine, timeSource)
  }

  private init(
    _ configuration: ClientConfiguration, _ list: EndpointList?, _ warning: NetOptError?, _ router: Router,
    _ engine: Engine, _ timeSource: any TimeSource
  ) {
    self.list = list
    listWarning = warning
    self.router = router
    self.engine = engine
    self.timeSource = timeSource
    loopExecutor = engine.loop.map { LoopTaskExecutor($0) } ?? globalConcurrentExecutor
    prober = Prober(router, engine.transport, list, configuration.probing, timeSource)
    var links: [any Interceptor] = []
    if !configuration.observers.isEmpty { links.append(EventInterceptor(observers: configuration.observers)) }
    links.append(RedirectInterceptor())
    links += configuration.interceptors
    links.append(RouteInterceptor(router: router, prober: prober))
    if let signing = configuration.signing { links.append(SigningInterceptor(signing)) }
    links.append(TransportInterceptor(transport: engine.transport))
    self.links = links
    if configuration.probing.atStart { prober.start() }
  }

  deinit {
    prober.stop()
    engine.shutDownLater()
  }

  /// Performs a request, and returns when the head of the response is there. The body is read from the response; a
  /// response that is let go before its end cancels the transfer. Cancelling the task cancels the call.
  ///
  /// - Throws: `NetOptError`; its `route` has every attempt that was made.
  public func execute(_ request: HTTPRequest) async throws(NetOptError) -> HTTPResponse {
    let started = timeSource.now()
    let context = CallContext(
      id: lastID.wrappingAdd(1, ordering: .relaxed).newValue, started: started,
      deadline: request.options.timeout.map { started + $0 })
    return try await InterceptorChain(links, context: context).proceed(request)
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
  public func resolve(_ host: String, fresh: Bool = false) async throws(NetOptError) -> ResolvedAddresses {
    try await engine.resolver.resolve(Origin.normalized(host: host), fresh: fresh)
  }

  /// Ends everything: calls that are under way fail with `shutDown`, connections are closed, the thread ends. After
  /// it no descriptor or thread of the client is left. Whoever calls it again waits for the same end.
  public func shutdown() async {
    prober.stop()
    await engine.shutDown()
  }
}

/// What a client runs on.
final class Engine: Sendable {
  let transport: any Transport
  let resolver: any Resolver
  let loop: EventLoop?
  /// The end, once it has begun.
  private let ending = Locked<Task<Void, Never>?>(nil)

  init(transport: any Transport, resolver: any Resolver, loop: EventLoop?) {
    self.transport = transport
    self.resolver = resolver
    self.loop = loop
  }

  func shutDown() async {
    await end().value
  }

  /// Shuts down without anyone to wait for it.
  func shutDownLater() {
    _ = end()
  }

  /// Begins the end, unless it has begun.
  private func end() -> Task<Void, Never> {
    ending.withLock { ending in
      if let ending { return ending }
      let task = Task { [transport, resolver, loop] in
        await transport.shutdown()
        await resolver.shutdown()
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
