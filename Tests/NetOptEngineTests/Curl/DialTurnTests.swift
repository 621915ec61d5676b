import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptEngine

/// Probes that begin together dial in different turns of the loop.
@Suite struct DialTurnTests {
  /// Fires in every turn of the loop and records how many probes wait to dial.
  ///
  /// Unchecked sendable: only the loop uses it.
  private final class Turns: LoopTimer, @unchecked Sendable {
    private unowned let multi: CurlMulti
    private let loop: EventLoop
    private(set) var waiting: [Int] = []

    init(_ multi: CurlMulti, _ loop: EventLoop) {
      (self.multi, self.loop) = (multi, loop)
      super.init()
    }

    override func fire() {
      waiting.append(multi.assumeIsolated { $0.dials.count })
      loop.schedule(self, at: loop.now())
    }
  }

  /// Probes of one server, without the transport's `connect`, which hides the multi handle.
  private struct Scene: Sendable {
    let loop: EventLoop
    let generations: NetworkGenerations
    let origin: NginxOrigin

    init() async throws {
      let certificate = try await TestCertificates.certificate(for: ["api.test"])
      origin = try await NginxOrigin.start([NginxOrigin.Listener(.loopback, .certificate(certificate))])
      var configuration = CurlConfiguration()
      configuration.tls.authorities = try AuthorityFile.read(try await TestCertificates.authorityFile())
      loop = try EventLoop()
      generations = try NetworkGenerations(
        configuration, try ClientTLS(configuration, loop: loop), legs: FixedAnswers(addresses: []),
        waitObserver: nil, counter: TransportCounter(), loop: loop)
    }

    /// Makes one probe. A probe has a connection of its own.
    ///
    /// - Parameter age: for how long the probe has waited when it begins.
    func probe(age: Duration = .zero) async throws(LegError) -> ConnectReport {
      let target = Origin(.https, host: "api.test", port: origin.port)
      var options = RequestOptions()
      options.connection = .fresh
      let plan = RoutePlan(
        origin: target, policy: .probe, legs: [RoutePlan.Leg(.address(.loopback), source: .list)])
      let now = loop.now()
      let exchange = Exchange(
        .probe, NetOptRequest(.head, HTTPURL(origin: target, target: "/"), options: options), along: plan,
        in: CallContext(id: 0, started: now + (.zero - age), deadline: now + .seconds(60)), on: generations,
        loop: loop,
        bodyBuffer: 1 << 16)
      await exchange.perform()
      return try exchange.takeConnection()
    }

    func shutDown() async throws {
      try await loop.perform { [generations] in generations.shutDown() }
    }

    func end() async throws {
      try await shutDown()
      loop.stop()
      origin.stop()
    }
  }

  /// Probes dial together if they have waited for 10 ms. How fast the machine is must not matter here, so these
  /// probes have waited for a minute, or will have begun in a minute.
  @Test(
    "of 20 probes that begin in one turn, one dials in each turn; all of them when they have waited",
    arguments: [false, true])
  func turns(haveWaited: Bool) async throws {
    let scene = try await Scene()
    let record = try await scene.loop.perform { [loop = scene.loop, generations = scene.generations] in
      let turns = Turns(generations.current, loop)
      loop.schedule(turns, at: loop.now())
      return turns
    }
    let executor = LoopTaskExecutor(scene.loop)
    // The tasks begin in one turn, because a task on the loop's thread makes them.
    let connected = try await Task(executorPreference: executor) {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<20 { group.addTask { _ = try await scene.probe(age: .seconds(haveWaited ? 60 : -60)) } }
        return try await group.reduce(into: 0) { count, _ in count += 1 }
      }
    }.value
    #expect(connected == 20)
    let waiting = try await scene.loop.perform { [loop = scene.loop] in
      loop.cancel(record)
      return record.waiting
    }
    #expect(waiting.max() == 19, "the probes did not begin together: \(waiting)")
    let steps = zip(waiting, waiting.dropFirst()).map { $0 - $1 }.filter { $0 > 0 }
    #expect(steps == (haveWaited ? [19] : Array(repeating: 1, count: 19)), "\(waiting)")
    try await scene.end()
  }

  @Test("every probe ends, whichever probes are cancelled, and when the client ends", arguments: 1...8)
  func ends(seed: UInt64) async throws {
    var random = SplitMix64(seed: seed)
    let scene = try await Scene()
    let executor = LoopTaskExecutor(scene.loop)
    let count = Int.random(in: 2...30, using: &random)
    let probes = (0..<count).map { _ in
      Task(executorPreference: executor) { () throws(LegError) in try await scene.probe() }
    }
    let cancelled = Set((0..<count).filter { _ in Bool.random(using: &random) })
    // Some are cancelled before they begin, some while they wait, some when they have dialled.
    for index in cancelled {
      if Bool.random(using: &random) { try await scene.loop.perform {} }
      probes[index].cancel()
    }
    if Bool.random(using: &random) {
      try await scene.loop.perform { [generations = scene.generations] in generations.renew() }
    }
    let endsEarly = Bool.random(using: &random)
    if endsEarly { try await scene.shutDown() }
    for (index, probe) in probes.enumerated() {
      switch await probe.result {
      case .success: break
      case .failure(let error):
        let leg = try #require(error as? LegError)
        #expect(leg.isInconclusive && (cancelled.contains(index) || endsEarly), "probe \(index): \(leg)")
      }
    }
    try await scene.end()
  }
}
