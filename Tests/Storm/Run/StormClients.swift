import NetOpt
import NetOptCore
import NetOptLocking
import NetOptTestSupport
import TestTools

/// The clients of a storm, each with its own settings. They are replaced by new ones while requests are under
/// way.
final class StormClients: Sendable {
  /// A reference that does not keep its client allocated.
  private struct WeakClient: Sendable {
    weak let client: NetOptClient?
  }

  private struct State {
    /// The clients in use, by number. Empty after `shutdown`.
    var clients: [NetOptClient] = []
    /// All clients that were shut down.
    var replaced: [WeakClient] = []
  }

  private let origins: StormOrigins
  /// The directory of the disk cache of client 3. The clients that replace client 3 use it too.
  private let cacheDirectory: String
  private let state = Locked(State())

  /// Makes the clients.
  init(_ origins: StormOrigins) throws {
    self.origins = origins
    cacheDirectory = try TemporaryDirectory.make("storm-cache")
    for number in 0..<RequestGenerator.clients {
      let client = try make(number)
      state.withLock { $0.clients.append(client) }
    }
  }

  /// The client in use with this number.
  subscript(number: Int) -> NetOptClient { state.withLock { $0.clients[number] } }

  /// Replaces a client by a new one with the same settings, and shuts the old client down.
  func replace(_ number: Int) async throws {
    let new = try make(number)
    let old = state.withLock { state in
      let old = state.clients[number]
      state.clients[number] = new
      state.replaced.append(WeakClient(client: old))
      return old
    }
    await old.shutdown()
  }

  /// Shuts down all clients.
  func shutdown() async {
    let clients = state.withLock { state in
      state.replaced += state.clients.map { WeakClient(client: $0) }
      defer { state.clients = [] }
      return state.clients
    }
    await withTaskGroup { group in
      for client in clients { group.addTask { await client.shutdown() } }
    }
  }

  /// The number of clients that were shut down but are still allocated.
  var left: Int { state.withLock { state in state.replaced.count { $0.client != nil } } }

  /// Makes a client with the settings for this number: 0, the default settings; 1, narrow limits and a small
  /// buffer; 2, a cache in memory; 3, a cache on disk; 4, a small cache and short-lived connections.
  private func make(_ number: Int) throws -> NetOptClient {
    var configuration = origins.configuration()
    switch number {
    case 1:
      configuration.connections.perEndpoint = 3
      configuration.connections.total = 8
      configuration.connections.idle = 2
      configuration.connections.idleAge = .seconds(1)
      configuration.connections.bodyBuffer = 16 * 1024
    case 2:
      configuration.cache = ClientConfiguration.Cache()
    case 3:
      var cache = ClientConfiguration.Cache()
      cache.directory = cacheDirectory
      configuration.cache = cache
    case 4:
      var cache = ClientConfiguration.Cache()
      cache.maxBytes = 1 << 20
      configuration.cache = cache
      configuration.connections.lifetime = .seconds(3)
      configuration.probing.inBackground = false
    default: break
    }
    return try NetOptClient(configuration)
  }
}
