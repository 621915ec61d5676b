import NetOptCore
import NetOptEngine
import NetOptLocking
import NetOptRouting

/// The transport, the resolver and the event loop of a client.
final class Engine: Sendable {
  let transport: any Transport
  let resolver: any Resolver
  /// The event loop; `nil` when the program provides the transport.
  let loop: EventLoop?
  /// Observes the requests that wait for responses; `nil` when the program provides the transport.
  let waits: WaitWatch?
  /// Applies changes of certificate files and pins; `nil` when the program provides the transport.
  let trustChanges: TrustChanges?
  /// The task that shuts the engine down; `nil` before the shutdown.
  private let ending = Locked<Task<Void, Never>?>(nil)
  /// Notices changes of the network; `nil` before the start and after the shutdown.
  private let monitor = Locked<NetworkMonitor?>(nil)

  init(
    transport: any Transport, resolver: any Resolver, loop: EventLoop?, waits: WaitWatch? = nil,
    trustChanges: TrustChanges? = nil
  ) {
    self.transport = transport
    self.resolver = resolver
    self.loop = loop
    self.waits = waits
    self.trustChanges = trustChanges
  }

  /// Starts a network monitor, which runs until the shutdown.
  func begin(_ monitor: NetworkMonitor) {
    self.monitor.withLock { $0 = monitor }
    monitor.start()
  }

  /// - Parameter ranking: the ranking that the shutdown saves.
  func shutDown(_ ranking: RankingMemory) async {
    await end(ranking).value
  }

  /// Starts the shutdown and does not wait for its end.
  func shutDownLater(_ ranking: RankingMemory) {
    _ = end(ranking)
  }

  /// Starts the shutdown unless it has begun, and returns its task.
  private func end(_ ranking: RankingMemory) -> Task<Void, Never> {
    ending.withLock { ending in
      if let ending { return ending }
      let monitor = monitor.withLock { $0.take() }
      let task = Task { [transport, resolver, loop, trustChanges] in
        await monitor?.stop()
        trustChanges?.stop()
        // The transport ends before the ranking is written to the disk, so that running calls fail at once.
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
  /// - Parameter list: the IP list in use. The transport applies its pins to the hosts for which the TLS
  ///   settings have none.
  init(_ configuration: ClientConfiguration, _ loaded: LoadedTLS, _ list: EndpointList?) {
    self.init()
    listPins = list?.pins ?? [:]
    (tls, hosts) = (loaded.usual, loaded.hosts)
    keyLog = configuration.tls.keyLog
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
