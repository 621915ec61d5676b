import FoundationEssentials
import NetOpt
import NetOptCore
import NetOptLocking
import NetOptRouting
import NetOptTestSupport
import TestTools
import Testing

/// Tests what a client does with the ranking that an earlier client has saved.
@Suite struct RankingHistoryTests {
  private static let host = "api.test"
  private let addresses = IPAddress.freshLoopback(2)
  /// The state directory.
  private let directory: String

  init() throws { directory = try TemporaryDirectory.make("state") }

  /// A transport whose probes have no result: `connect`, which opens connections for probes, waits until it
  /// is cancelled. The transport passes requests on to `base`.
  private final class ProbesWait: Transport {
    let base: StubTransport
    private let attempts = Locked(0)
    /// The number of calls of `connect`.
    var probes: Int { attempts.withLock { $0 } }

    init(_ base: StubTransport) { self.base = base }

    func execute(
      _ request: NetOptRequest, along plan: RoutePlan, in context: CallContext
    ) async throws(NetOptError) -> NetOptResponse {
      try await base.execute(request, along: plan, in: context)
    }

    func connect(
      to endpoint: IPEndpoint, of origin: Origin, within limit: Duration, keep: Bool
    ) async throws(LegError) -> ConnectReport {
      attempts.withLock { $0 += 1 }
      try? await Task.sleep(for: .seconds(600))
      throw LegError(LegFailure(.other, "cancelled"), isInconclusive: true)
    }

    func shutdown() async { await base.shutdown() }
  }

  /// A transport without a network. Connections to the second address are faster.
  private func stub() -> StubTransport {
    StubTransport([
      addresses[0]: .respond().taking(connect: .milliseconds(30)), addresses[1]: .respond(),
    ])
  }

  /// A configuration with both addresses in its list.
  ///
  /// - Parameter place: where the client saves its ranking.
  private func configuration(_ place: ClientConfiguration.History) -> ClientConfiguration {
    var configuration = ClientConfiguration()
    let endpoints = addresses.map { ListedEndpoint($0) }
    configuration.list = .list(EndpointList(hosts: [Self.host: HostEntry(endpoints: endpoints)]))
    configuration.proxy = .none
    configuration.rankingHistory = place
    return configuration
  }

  /// Runs the first client: probes both endpoints, sends requests, and shuts down. If `requests` is not 0,
  /// the client then saves its ranking in `place`.
  private func firstRun(_ place: ClientConfiguration.History, requests: Int = 1) async throws {
    let client = try NetOptClient(configuration(place), transport: stub(), resolver: StubResolver())
    _ = try await client.probe()
    for _ in 0..<requests {
      _ = try await client.execute(try NetOptRequest(.get, "https://\(Self.host)/"))
    }
    await client.shutdown()
  }

  @Test("a second start sends its first request to the faster endpoint without waiting for probes")
  func secondStart() async throws {
    try await firstRun(.directory(directory))
    let transport = ProbesWait(stub())
    var configuration = configuration(.directory(directory))
    configuration.probing.firstRequestWait = .seconds(500)
    let client = try NetOptClient(configuration, transport: transport, resolver: StubResolver())
    let response = try await client.execute(try NetOptRequest(.get, "https://\(Self.host)/"))
    // The request goes to the endpoint that the first run found faster, while the second run's probes are in
    // flight.
    #expect(response.remote?.address == addresses[1])
    #expect(response.route.plan.candidates.map(\.score).allSatisfy { $0 != nil })
    try await wait(for: "both probes") { transport.probes == 2 }
    await client.shutdown()
  }

  @Test("without a saved ranking the first request waits for firstRequestWait")
  func withoutHistory() async throws {
    try await firstRun(.none)
    let transport = ProbesWait(stub())
    var configuration = configuration(.directory(directory))
    configuration.probing.firstRequestWait = .milliseconds(150)
    let client = try NetOptClient(configuration, transport: transport, resolver: StubResolver())
    let response = try await client.execute(try NetOptRequest(.get, "https://\(Self.host)/"))
    #expect(try #require(response.route.legs.first).started >= .milliseconds(149))
    await client.shutdown()
  }

  @Test("a client that sent no request saves no ranking")
  func unusedClient() async throws {
    try await firstRun(.directory(directory), requests: 0)
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory).isEmpty)
    try await firstRun(.directory(directory))
    #expect(try FileManager.default.contentsOfDirectory(atPath: "\(directory)/rankings").count == 1)
  }

  @Test("a client warns once of a ranking that it cannot read or write")
  func warnings() async throws {
    // This path cannot be a state directory, because it is a file.
    let file = "\(directory)/file"
    try Data().write(to: URL(filePath: file))
    try await firstRun(.directory(directory))
    let rankings = "\(directory)/rankings"
    let name = try #require(try FileManager.default.contentsOfDirectory(atPath: rankings).first)
    // The other path has a ranking file that is broken.
    try Data("broken".utf8).write(to: URL(filePath: "\(rankings)/\(name)"))
    for (place, code, part) in [
      (directory, NetOptError.Code.invalidConfiguration, name), (file, .unwritableFile, file),
    ] {
      let warnings = EventRecorder<NetOptError>()
      var configuration = configuration(.directory(place))
      configuration.warningHandler = { warnings.record($0) }
      let client = try NetOptClient(configuration, transport: stub(), resolver: StubResolver())
      _ = try await client.execute(try NetOptRequest(.get, "https://\(Self.host)/"))
      await client.shutdown()
      #expect(warnings.events.map(\.code) == [code])
      #expect(warnings.events.first?.message.contains(part) == true)
    }
  }

  /// Uses real servers and the times of real connections.
  @Test("a client on real servers uses the ranking that an earlier client saved")
  func realServers() async throws {
    let lab = try await Lab([.works, .works])
    defer { lab.stop() }
    let directory = directory
    let first = try await lab.client { $0.rankingHistory = .directory(directory) }
    _ = try await first.probe()
    let used = try await first.execute(try lab.request()).remote
    await first.shutdown()
    let second = try await lab.client {
      $0.rankingHistory = .directory(directory)
      $0.probing.atStart = false
    }
    let response = try await second.execute(try lab.request())
    #expect(response.remote == used)
    #expect(response.route.plan.candidates.allSatisfy { $0.score != nil })
    await second.shutdown()
  }
}
