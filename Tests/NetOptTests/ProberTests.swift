import NetOptCore
import NetOptLocking
import NetOptRouting
import NetOptTestSupport
import Synchronization
import Testing

@testable import NetOpt

/// Tests how the prober judges endpoints, which connections it keeps, and that it leaves no tasks behind.
@Suite struct ProberTests {
  private let a = IPAddress(v4: 0x0a00_0001)
  private let b = IPAddress(v4: 0x0a00_0002)
  private let origin = Origin(.https, host: "api.test")

  /// A prober with a clock that only its probes and the test move.
  private struct Bench {
    let clock = ManualTimeSource()
    let router: Router
    let prober: Prober

    /// - Parameter connect: decides the outcome of each connection attempt of a probe. It moves the clock by
    ///   the time that the attempt takes.
    init(
      _ addresses: [IPAddress], host: String, port: UInt16 = 443, concurrency: Int = 64,
      atStart: Bool = false,
      includesUnusedHosts: Bool = true, method: ProbeMethod? = nil,
      _ connect: @escaping @Sendable (ManualTimeSource, ConnectRequest) -> Result<ConnectReport, LegError>
    ) {
      let endpoints = addresses.map { ListedEndpoint($0) }
      let list = EndpointList(hosts: [host: HostEntry(port: port, endpoints: endpoints)])
      var configuration = ClientConfiguration()
      configuration.proxy = .none
      configuration.probing.atStart = atStart
      configuration.probing.includesUnusedHosts = includesUnusedHosts
      configuration.probing.concurrency = concurrency
      configuration.probing.method = method
      router = Router(list, configuration, clock)
      let clock = clock
      let engine = Engine(
        transport: ProbedTransport { connect(clock, $0) }, resolver: StubResolver(), loop: nil)
      prober = Prober(router, engine, list, known: [], configuration.probing, clock)
    }

    func status(of address: IPAddress, _ origin: Origin) -> EndpointStatus? {
      router.withPlanner { planner, now in planner.status(of: origin, at: now) }
        .first { $0.endpoint.address == address }
    }
  }

  /// The outcome of a connection attempt that times out. Moves the clock to the time limit.
  private static func timeout(
    _ clock: ManualTimeSource, _ probe: ConnectRequest
  ) -> Result<ConnectReport, LegError> {
    clock.advance(by: probe.limit)
    return .failure(LegError(LegFailure(.connectTimeout, "did not answer in time")))
  }

  /// The outcome of a connection attempt that becomes ready after a time, half of it for TCP and half for
  /// TLS. Moves the clock.
  private static func ready(
    _ clock: ManualTimeSource, after milliseconds: Int
  ) -> Result<ConnectReport, LegError> {
    clock.advance(by: .milliseconds(milliseconds))
    return .success(
      ConnectReport(connect: .milliseconds(milliseconds / 2), tls: .milliseconds(milliseconds / 2)))
  }

  /// The list names no scheme.
  @Test(
    "probes use the scheme of the first request, also when it comes during others",
    arguments: ["http", "https"])
  func scheme(_ scheme: String) async throws {
    let request = try NetOptRequest(.get, "\(scheme)://\(origin.host):8080/")
    let probed = EventRecorder<Origin.Scheme>()
    let first = Bench([a, b], host: origin.host, port: 8080, atStart: true, includesUnusedHosts: false) {
      clock, probe in
      probed.record(probe.origin.scheme)
      return Self.ready(clock, after: 10)
    }
    await first.prober.waitForFirstAnswer(to: request, until: nil)
    try await wait(for: "the probes") { first.prober.taskCount == 0 }
    // Quick samples open TCP only, as if for http.
    #expect(!probed.events.isEmpty && probed.events.contains(.https) == (scheme == "https"))
    // Before the first request, the scheme is a guess. Here the request comes while the client probes.
    let router = Mutex<Router?>(nil)
    let bench = Bench([a, b], host: origin.host, port: 8080) { clock, probe in
      _ = try? router.withLock { $0 }?.plan(for: request, nil)
      return Self.ready(clock, after: 10)
    }
    router.withLock { $0 = bench.router }
    for method in [ProbeMethod.tls, scheme == "http" ? .tcp : .tls] {
      let result = try #require(try await bench.prober.probe(hosts: nil, method: nil).first)
      #expect(result.method == method)
      #expect(result.endpoints.count == 2 && result.endpoints.allSatisfy { !$0.samples.isEmpty })
    }
  }

  @Test("a quick sample that has no time left does not count as a failure")
  func lateSample() async throws {
    let bench = Bench([a], host: origin.host) { clock, probe in
      // The full sample takes 990 ms of the budget of 1 s. The quick sample, which uses TCP alone (`http`),
      // gets the remaining 10 ms and times out.
      probe.origin.scheme == .https ? Self.ready(clock, after: 990) : Self.timeout(clock, probe)
    }
    let probe = try #require(try await bench.prober.probe(hosts: nil, method: nil).first?.endpoints.first)
    #expect(probe.samples == [.milliseconds(495)])
    #expect(probe.failure == nil)
    let status = try #require(bench.status(of: a, origin))
    #expect(status.score == .milliseconds(990))
    #expect(status.lastFailure == nil)
  }

  @Test("a late probe is not blamed for the time that other probes took")
  func lateProbe() async throws {
    let (a, b) = (a, b)
    let bench = Bench([a, b], host: origin.host, concurrency: 1) { clock, probe in
      // The three samples of `a` take 600 ms. So `b` gets only 400 ms of the budget of 1 s.
      probe.endpoint.address == b ? Self.timeout(clock, probe) : Self.ready(clock, after: 200)
    }
    for _ in 0..<3 { _ = try await bench.prober.probe(hosts: nil, method: nil) }
    let late = try #require(bench.status(of: b, origin))
    #expect(late.state == .closed && late.lastFailure == nil)
    #expect(bench.status(of: a, origin)?.state == .closed)
  }

  @Test("probes that time out with the whole budget open the circuit breaker")
  func wholeBudget() async throws {
    let bench = Bench([a], host: origin.host) { clock, probe in Self.timeout(clock, probe) }
    for _ in 0..<3 { _ = try await bench.prober.probe(hosts: nil, method: nil) }
    let status = try #require(bench.status(of: a, origin))
    #expect(status.state == .open && status.lastFailure?.kind == .connectTimeout)
  }

  /// The pool keeps the connection of a probe only if the next request uses it. Other kept connections would
  /// only displace connections that are in use.
  @Test("a background probe keeps only the connection that the next request uses")
  func keptConnection() async throws {
    let fast = a
    // For each address, the values of `keepsConnection` in its TLS handshakes.
    let handshakes = Locked<[IPAddress: Set<Bool>]>([:])
    let bench = Bench([a, b], host: origin.host) { clock, probe in
      if probe.origin.scheme == .https {
        handshakes.withLock { _ = $0[probe.endpoint.address, default: []].insert(probe.keepsConnection) }
      }
      return Self.ready(clock, after: probe.endpoint.address == fast ? 10 : 60)
    }
    _ = try await bench.prober.probe(hosts: nil, method: nil)
    #expect(handshakes.withLock(\.self) == [a: [false], b: [false]])
    handshakes.withLock { $0 = [:] }
    let request = try NetOptRequest(.get, "https://api.test/")
    for _ in 0..<100 where handshakes.withLock({ $0.count }) < 2 {
      _ = try bench.router.plan(for: request, nil)
      bench.clock.advance(by: .seconds(10))
      let due = bench.router.withPlanner { planner, now in planner.dueProbes(at: now) }
      await bench.prober.probe(due)
    }
    #expect(handshakes.withLock(\.self) == [a: [true], b: [false]])
  }

  /// A failed health check shows nothing about the certificate. An existing connection shows only the
  /// certificate of its own handshake.
  @Test(
    "a background probe checks a quarantined endpoint's certificate by a new handshake",
    arguments: ProbeMethod.allCases)
  func certificateCheck(_ method: ProbeMethod) async throws {
    let isWrong = Locked(true)
    // The value of `keepsConnection` in each TLS handshake.
    let handshakes = Locked<[Bool]>([])
    let bench = Bench([a], host: origin.host, method: method) { clock, probe in
      guard probe.origin.scheme == .https else { return Self.ready(clock, after: 2) }
      handshakes.withLock { $0.append(probe.keepsConnection) }
      let failure = LegFailure(.certificateName(presented: ["portal.test"]), "another name")
      return isWrong.withLock(\.self) ? .failure(LegError(failure)) : Self.ready(clock, after: 20)
    }
    _ = try await bench.prober.probe(hosts: nil, method: .tls)
    #expect(bench.status(of: a, origin)?.state == .quarantined)
    _ = try bench.router.plan(for: try NetOptRequest(.get, "https://api.test/"), nil)
    for wrong in [true, false] {
      isWrong.withLock { $0 = wrong }
      handshakes.withLock { $0 = [] }
      bench.clock.advance(by: .seconds(3))
      let due = bench.router.withPlanner { planner, now in planner.dueProbes(at: now) }
      #expect(due.map(\.checksCertificate) == [true])
      await bench.prober.probe(due)
      #expect(handshakes.withLock(\.self) == [false])
      #expect(bench.status(of: a, origin)?.state == (wrong ? .quarantined : .closed))
    }
  }

  /// `BackgroundProbes` needs this report, because the results of these probes may make a background probe
  /// due earlier than the planner said before.
  @Test("the prober reports the end of the probes at start and of explicit probes")
  func otherProbes() async throws {
    let bench = Bench([a], host: origin.host, atStart: true) { clock, _ in Self.ready(clock, after: 2) }
    let told = EventRecorder<Int>()
    bench.prober.whenProbed { told.record(1) }
    bench.prober.start()
    try await told.wait(for: "the end of the probes at start") { $0.count == 1 }
    _ = try await bench.prober.probe(hosts: nil, method: nil)
    #expect(told.events.count == 2)
    bench.prober.stop()
  }

  @Test("hosts without requests are not probed if the configuration excludes them")
  func unusedHosts() async throws {
    let asked = EventRecorder<IPAddress>()
    let bench = Bench([a], host: origin.host, atStart: true, includesUnusedHosts: false) { clock, request in
      asked.record(request.endpoint.address)
      return Self.ready(clock, after: 2)
    }
    bench.prober.start()
    let list = EndpointList(hosts: [
      origin.host: HostEntry(endpoints: [ListedEndpoint(a)]),
      "b.test": HostEntry(endpoints: [ListedEndpoint(b)]),
    ])
    bench.router.adopt(list)
    bench.prober.adopt(list)
    #expect(bench.prober.taskCount == 0)
    await bench.prober.waitForFirstAnswer(to: try NetOptRequest(.get, "https://b.test/"), until: nil)
    try await wait(for: "the end of the probes") { bench.prober.taskCount == 0 }
    #expect(!asked.events.isEmpty && asked.events.allSatisfy { $0 == b })
    bench.prober.stop()
  }

  @Test("the probes of replaced lists leave no task behind")
  func taskCount() async throws {
    let bench = Bench([a], host: origin.host, atStart: true) { clock, _ in Self.ready(clock, after: 2) }
    bench.prober.start()
    for round in 2..<20 {
      let endpoints = [ListedEndpoint(IPAddress(v4: 0x0a00_0000 + UInt32(round)))]
      let list = EndpointList(hosts: [origin.host: HostEntry(endpoints: endpoints)])
      bench.router.adopt(list)
      bench.prober.adopt(list)
    }
    try await wait(for: "the end of all tasks") { bench.prober.taskCount == 0 }
    bench.prober.stop()
  }
}

/// A connection that a probe asks the transport for.
private struct ConnectRequest {
  let endpoint: IPEndpoint
  let origin: Origin
  /// The time limit of the attempt.
  let limit: Duration
  /// Whether the transport may keep the connection for requests, and may use a pooled one.
  let keepsConnection: Bool
}

/// A transport that opens connections and sends no requests.
private struct ProbedTransport: Transport {
  let connect: @Sendable (ConnectRequest) -> Result<ConnectReport, LegError>

  func connect(
    to endpoint: IPEndpoint, of origin: Origin, within limit: Duration, keep: Bool
  ) async throws(LegError) -> ConnectReport {
    try connect(ConnectRequest(endpoint: endpoint, origin: origin, limit: limit, keepsConnection: keep)).get()
  }

  func execute(
    _ request: NetOptRequest, along plan: RoutePlan, in context: CallContext
  ) async throws(NetOptError) -> NetOptResponse {
    throw NetOptError(.unsupported, phase: .send, "this transport sends no requests")
  }

  func shutdown() async {}
}
