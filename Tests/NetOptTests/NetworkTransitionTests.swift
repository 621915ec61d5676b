import FoundationEssentials
import NetOptCore
@testable import NetOptEngine
import NetOptRouting
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOpt

/// A machine that comes into another network.
@Suite struct NetworkTransitionTests {
  private static func network(_ gateway: UInt32) -> NetworkFingerprint {
    NetworkFingerprint([
      .init(route: DefaultRoute(gateway: IPAddress(v4: gateway), interface: "eth0"), source: nil)
    ])
  }

  private let home = network(1)
  private let office = network(2)

  /// History belongs to a network: it goes with it, and comes back with it.
  @Test func endpointsAreProbedAgainAndHistoryIsThatOfTheNetwork() async throws {
    let addresses = IPAddress.freshLoopback(2)
    let origin = Origin(.https, host: "api.test")
    let transport = StubTransport([
      addresses[0]: .respond(), addresses[1]: .respond().taking(connect: .milliseconds(30)),
    ])
    let list = EndpointList(hosts: ["api.test": HostEntry(endpoints: addresses.map { ListedEndpoint($0) })])
    var configuration = ClientConfiguration()
    configuration.rankingHistory = .none
    configuration.proxy = .none
    let time = SystemTimeSource()
    let router = Router(list, configuration, time)
    let engine = Engine(transport: transport, resolver: StubResolver(), loop: nil)
    let ranking = RankingMemory(router, configuration, network: home, time)
    let prober = Prober(router, engine, list, known: [], configuration.probing, time)
    let transition = NetworkTransition(
      transport: transport, resolver: StubResolver(), ranking: ranking, prober: prober,
      retries: Retries(time, observers: []))
    func leader() -> IPAddress? {
      router.withPlanner { planner, now in planner.status(of: origin, at: now).first { $0.score != nil } }?
        .endpoint.address
    }
    prober.start()
    try await wait(for: "the first ranking") { transport.opened.count >= 6 && leader() == addresses[0] }
    _ = try router.plan(for: try NetOptRequest(.get, "https://api.test/"), nil)
    // There, the first endpoint cannot be reached.
    transport.set(.refuse, for: addresses[0])
    transition.perform(office)
    try await wait(for: "the other ranking") { leader() == addresses[1] }
    #expect(!router.isOfThisNetwork(MonotonicInstant(nanoseconds: 0)))
    // What began before says nothing about this network.
    let failure = LegError(LegFailure(.refused, "refused"))
    for _ in 0..<3 {
      router.record(
        probe: .failure(failure), of: addresses[1], for: origin, started: MonotonicInstant(nanoseconds: 0))
    }
    #expect(leader() == addresses[1])
    // Home again, before any probe has an answer.
    transport.set(.silent, for: addresses[0])
    transport.set(.silent, for: addresses[1])
    transition.perform(home)
    // No request is planned without it.
    #expect(leader() == addresses[0])
    prober.stop()
    await transport.shutdown()
  }

  /// A network that was left before anything was learned there may be one of which a file knows more.
  @Test func aVisitWithoutNewsHidesNoFile() {
    var configuration = ClientConfiguration()
    configuration.rankingHistory = .none
    let list = EndpointList(
      hosts: ["api.test": HostEntry(endpoints: [ListedEndpoint(IPAddress.freshLoopback(1)[0])])])
    let ranking = RankingMemory(
      Router(list, configuration), configuration, network: home, SystemTimeSource())
    #expect(ranking.networkChanged(to: office) == nil)
    #expect(ranking.networkChanged(to: home) == nil)
  }

  /// Whoever sends nothing costs nothing, wherever the machine goes: a laptop's daemon must not call home at every café.
  @Test func hostsThatAreNotInUseAreNotProbed() async throws {
    let address = IPAddress.freshLoopback(1)[0]
    let hosts = ["api.test", "www.test"]
    let transport = StubTransport([address: .respond()])
    let list = EndpointList(
      hosts: Dictionary(
        uniqueKeysWithValues: hosts.map { ($0, HostEntry(endpoints: [ListedEndpoint(address)])) }))
    var configuration = ClientConfiguration()
    configuration.proxy = .none
    let router = Router(list, configuration)
    let engine = Engine(transport: transport, resolver: StubResolver(), loop: nil)
    let prober = Prober(router, engine, list, known: [], configuration.probing, SystemTimeSource())
    prober.start()
    try await wait(for: "the start's probes") { prober.taskCount == 0 }
    let atStart = transport.opened.count
    #expect(atStart == 6)
    _ = router.beginNetwork(at: .now)
    prober.probeAgain(known: [])
    #expect(prober.taskCount == 0)
    // One is used, and is probed when that is.
    let request = try NetOptRequest(.get, "https://api.test/")
    #expect(!prober.isSettled(request))
    await prober.waitForFirstAnswer(to: request, until: nil)
    _ = try router.plan(for: request, nil)
    try await wait(for: "its probes") { prober.taskCount == 0 }
    // The pooled connection is the stub's to keep, whatever the network: a probe opens two others beside it.
    #expect(transport.opened.count == atStart + 2)
    _ = router.beginNetwork(at: .now)
    prober.probeAgain(known: [])
    try await wait(for: "its probes") { transport.opened.count == atStart + 4 && prober.taskCount == 0 }
    prober.stop()
    await transport.shutdown()
  }

  /// All of it: the kernel's word, and a client that acts on it.
  @Test(.enabled("\(NetworkNamespace.missing)") { NetworkNamespace.isAvailable })
  func aClientOpensNewConnectionsInAnotherNetwork() async throws {
    let namespace = try NetworkNamespace()
    try namespace.addLink("eth7")
    for command in [
      "addr add 192.0.2.10/24 dev eth7",
      "route add default via 192.0.2.1",
    ] { try namespace.ip(command) }
    let (server, client) = try namespace.run {
      var configuration = ClientConfiguration()
      configuration.list = .none
      configuration.proxy = .none
      return (
        try LoopbackServer(.raw { exchange in try exchange.respond(200, text: "here") }),
        try NetOptClient(configuration)
      )
    }
    var request = try NetOptRequest(.get, "http://api.test:\(server.endpoint.port)/")
    request.options.routing = .pinned(server.endpoint.address)
    for _ in 0..<3 { _ = try await client.execute(request).body.collect(upTo: 100) }
    #expect(server.connections == 1)
    // Nothing that changes the way out.
    try namespace.ip("link add veth0 type veth peer name veth1")
    try namespace.ip("link set veth0 up")
    try namespace.ip("route replace default via 192.0.2.2")
    try await wait(for: "a new connection") {
      let status = try await client.execute(request).status
      #expect(status == 200)
      return server.connections == 2
    }
    for _ in 0..<3 { _ = try await client.execute(request).body.collect(upTo: 100) }
    #expect(server.connections == 2)
    try await wait(for: "the end of the old one") { server.openConnections == 1 }
    await client.shutdown()
    server.stop()
    namespace.end()
  }
}
