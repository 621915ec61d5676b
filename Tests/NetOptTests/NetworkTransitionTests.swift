import FoundationEssentials
import NetOptCore
@testable import NetOptEngine
import NetOptRouting
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOpt

/// Tests what a client does when its machine joins another network.
@Suite struct NetworkTransitionTests {
  /// A network whose default gateway has this address.
  private static func network(_ gateway: UInt32) -> NetworkFingerprint {
    NetworkFingerprint([
      .init(route: DefaultRoute(gateway: IPAddress(v4: gateway), interface: "eth0"), source: nil)
    ])
  }

  private let home = network(1)
  private let office = network(2)

  /// A ranking belongs to a network. When the machine leaves the network, the client puts the ranking aside.
  /// When the machine returns, the client restores the ranking.
  @Test("a network change probes the endpoints again, and a return restores the ranking")
  func networkChange() async throws {
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
    /// The address of the first endpoint in the ranking that has a score.
    func leader() -> IPAddress? {
      router.withPlanner { planner, now in planner.status(of: origin, at: now).first { $0.score != nil } }?
        .endpoint.address
    }
    prober.start()
    try await wait(for: "the first ranking") { transport.opened.count >= 6 && leader() == addresses[0] }
    // After this plan the host counts as in use. So it is probed after the change of the network.
    _ = try router.plan(for: try NetOptRequest(.get, "https://api.test/"), nil)
    // The first endpoint cannot be reached from the office network.
    transport.set(.refuse, for: addresses[0])
    transition.perform(office)
    try await wait(for: "the other ranking") { leader() == addresses[1] }
    #expect(!router.isFromCurrentNetwork(MonotonicInstant(nanoseconds: 0)))
    // Probes that began in the old network say nothing about the new network.
    let failure = LegError(LegFailure(.refused, "refused"))
    for _ in 0..<3 {
      router.record(
        probe: .failure(failure), of: addresses[1], for: origin, started: MonotonicInstant(nanoseconds: 0))
    }
    #expect(leader() == addresses[1])
    // The machine returns home. The endpoints are silent, so that no probe has a result.
    transport.set(.silent, for: addresses[0])
    transport.set(.silent, for: addresses[1])
    transition.perform(home)
    // The ranking is restored before `perform` returns. So every later request is planned with it.
    #expect(leader() == addresses[0])
    prober.stop()
    await transport.shutdown()
  }

  /// The client left a network before it learned anything there. When the machine returns, `networkChanged`
  /// gives `nil`, so that the caller reads the saved ranking from the file. An empty ranking in memory would
  /// hide it.
  @Test("a network left before any result has no ranking in memory")
  func visitWithoutResults() {
    var configuration = ClientConfiguration()
    configuration.rankingHistory = .none
    let list = EndpointList(
      hosts: ["api.test": HostEntry(endpoints: [ListedEndpoint(IPAddress.freshLoopback(1)[0])])])
    let ranking = RankingMemory(
      Router(list, configuration), configuration, network: home, SystemTimeSource())
    #expect(ranking.networkChanged(to: office) == nil)
    #expect(ranking.networkChanged(to: home) == nil)
  }

  /// A client that sends no requests sends no probes either, whichever networks the machine joins. For
  /// example, an idle program on a laptop must not connect to its servers in every café.
  @Test("after a network change the prober probes only the hosts in use")
  func unusedHosts() async throws {
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
    // Three samples for each of the two hosts.
    #expect(atStart == 6)
    _ = router.beginNetwork(at: .now)
    prober.probeAgain(known: [])
    #expect(prober.taskCount == 0)
    // The first request to a host starts the probes of this host only.
    let request = try NetOptRequest(.get, "https://api.test/")
    #expect(!prober.isSettled(request))
    await prober.waitForFirstAnswer(to: request, until: nil)
    _ = try router.plan(for: request, nil)
    try await wait(for: "its probes") { prober.taskCount == 0 }
    // The stub keeps its pooled connections when the network changes. A probe takes one full sample, which
    // uses the pooled connection here, and then two quick samples, each of which opens a connection
    // (`Prober+Samples`).
    #expect(transport.opened.count == atStart + 2)
    _ = router.beginNetwork(at: .now)
    prober.probeAgain(known: [])
    try await wait(for: "its probes") { transport.opened.count == atStart + 4 && prober.taskCount == 0 }
    prober.stop()
    await transport.shutdown()
  }

  /// Tests the whole path: the kernel's notification, and a client that acts on it.
  @Test(
    "a client opens a new connection after its default route changes",
    .enabled("\(NetworkNamespace.missing)") { NetworkNamespace.isAvailable })
  func newConnections() async throws {
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
    // The first two commands do not change the default route, so the machine is still in the same network.
    // The third command changes it.
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
