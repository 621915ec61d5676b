import FoundationEssentials
import NetOpt
import NetOptCore
import NetOptRouting
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCommands

/// What a response says about its way, and what `netopt get -v` makes of it, on real servers: complete and right whatever happened.
@Suite struct RouteExplanationTests {
  private static let host = "api.test"

  /// What stands behind a listed address.
  enum Kind: Sendable {
    case works
    case refuses
    case wrongCertificate
    case behaves(LoopbackServer.Behaviour)
  }

  /// A host with listed addresses, tried in this order, and one that only DNS knows.
  private struct Scene {
    let addresses: [IPAddress]
    let port: UInt16
    let origin: NginxOrigin
    let dns: DNSServer
    let others: [LoopbackServer]

    init(_ kinds: [Kind], directives: String = "") async throws {
      addresses = IPAddress.freshLoopback(kinds.count + 1)
      port = try FreePort.find(on: addresses)
      let valid = try await TestCertificates.certificate(for: [RouteExplanationTests.host])
      let other = try await TestCertificates.certificate(for: ["portal.test"])
      var listeners = [NginxOrigin.Listener(addresses[kinds.count], .certificate(valid))]
      var others: [LoopbackServer] = []
      for (kind, address) in zip(kinds, addresses) {
        switch kind {
        case .works: listeners.append(.init(address, .certificate(valid)))
        case .wrongCertificate: listeners.append(.init(address, .certificate(other)))
        case .behaves(let behaviour): others.append(try LoopbackServer(behaviour, on: address, port: port))
        case .refuses: break
        }
      }
      self.others = others
      var settings = NginxSettings()
      settings.directives = directives
      origin = try await NginxOrigin.start(listeners, port: port, settings: settings)
      dns = try await DNSServer.start([RouteExplanationTests.host: [addresses[kinds.count]]])
    }

    var listed: [IPAddress] { addresses.dropLast() }
    var unlisted: IPAddress { addresses[addresses.count - 1] }

    func client(_ change: (inout ClientConfiguration) -> Void = { _ in }) async throws -> NetOptClient {
      var configuration = ClientConfiguration()
      configuration.list = .list(list())
      configuration.tls.caFile = try await TestCertificates.authorityFile()
      configuration.dns.servers = [dns.endpoint.description]
      configuration.proxy = .none
      configuration.rankingHistory = .none
      configuration.probing.atStart = false
      configuration.probing.inBackground = false
      change(&configuration)
      return try NetOptClient(configuration)
    }

    func list(port: UInt16? = nil, expires: Date? = nil) -> EndpointList {
      // The higher weight comes first as long as nothing is known.
      let endpoints = listed.enumerated().map { ListedEndpoint($1, weight: 1000 - $0) }
      return EndpointList(
        serial: 1, expires: expires,
        hosts: [RouteExplanationTests.host: HostEntry(port: port ?? self.port, endpoints: endpoints)])
    }

    func request(_ target: String = "/", fresh: Bool = false) throws -> NetOptRequest {
      var request = try NetOptRequest(.get, "https://\(RouteExplanationTests.host):\(port)\(target)")
      if fresh { request.options.connection = .fresh }
      return request
    }

    func stop() {
      origin.stop()
      dns.stop()
      for server in others { server.stop() }
    }
  }

  /// What `get -v` prints of a response, after it was looked whether its report is complete.
  private func explained(
    _ client: NetOptClient, _ request: NetOptRequest, _ scene: Scene
  ) async throws -> (response: NetOptResponse, text: String) {
    let response = try await client.execute(request)
    let body = try await response.body.collect(upTo: 100_000)
    let exchange = NetOptCommands.Exchange(request.method, response, bodyBytes: Int64(body.count))
    let text = Waterfall(exchange).text(columns: 100)
    check(response.route, scene, text)
    let winner = try #require(response.route.winner)
    #expect(winner.address == response.remote?.address)
    #expect(winner.source == response.route.source && winner.reused == response.reused)
    let connection = winner.reused ? "pooled" : "new"
    #expect(text.contains("SERVER   \(try #require(response.remote)), \(connection) connection"), "\(text)")
    return (response, text)
  }

  private func check(_ route: RouteReport, _ scene: Scene, _ text: String) {
    let plan = route.plan
    #expect(!plan.legs.isEmpty)
    if plan.directOff == nil, plan.hasCandidates {
      // Each listed address is either in the plan or said to be left out, and why.
      #expect(
        Set(plan.candidates.map(\.address)) == Set(scene.listed)
          && plan.candidates.count == scene.listed.count)
      for candidate in plan.candidates {
        let isLeg = plan.legs.contains { $0.address == candidate.address }
        #expect(isLeg || candidate.excluded != nil, "\(candidate)")
        #expect(text.contains("\(candidate.address)"))
        if let reason = candidate.excluded {
          #expect(text.contains(reason.description.prefix(30)), "\(text)")
        }
      }
    }
    for leg in route.legs {
      #expect(leg.started >= .zero && leg.ended >= leg.started)
      #expect((leg.outcome == .failed) == (leg.failure != nil))
      if leg.source == .list, plan.directOff == nil {
        #expect(scene.listed.contains(leg.address ?? .loopback))
      }
      let name = leg.address?.description ?? (plan.directOff == .proxy ? "proxy" : "look-up")
      let line = text.split(separator: "\n").first {
        $0.hasPrefix(" \(name) ") && $0.contains(leg.outcome.rawValue)
      }
      #expect(line != nil, "\(text)")
      if let failure = leg.failure { #expect(text.contains(failure.message.prefix(40)), "\(text)") }
    }
    #expect(text.split(separator: "\n").allSatisfy { $0.count <= 100 })
  }

  private func way(_ text: String) -> String? {
    text.split(separator: "\n").first { $0.hasPrefix("ROUTE    ") }.map { String($0.dropFirst(9)) }
  }

  private static let direct = "direct, from the list, policy fastest"

  @Test(arguments: [
    (Kind.works, [RouteReport.Outcome.won], ""), (.refuses, [.failed, .won], "refused"),
    (.behaves(.blackHole), [.cancelled, .won], ""), (.behaves(.silent), [.cancelled, .won], ""),
    (.wrongCertificate, [.failed, .won], "portal.test"),
  ])
  func theNextAddressOfTheList(kind: Kind, outcomes: [RouteReport.Outcome], reason: String) async throws {
    let scene = try await Scene([kind, .works])
    defer { scene.stop() }
    let client = try await scene.client()
    let (response, text) = try await explained(client, scene.request(), scene)
    #expect(way(text) == Self.direct)
    // On a busy machine DNS may have begun as well.
    let legs = response.route.legs
    #expect(legs.prefix(outcomes.count).map(\.outcome) == outcomes)
    #expect(legs.prefix(outcomes.count).map(\.address) == scene.listed.prefix(outcomes.count).map { $0 })
    #expect(legs.dropFirst(outcomes.count).allSatisfy { $0.outcome == .cancelled })
    #expect(response.remote?.address == scene.listed[outcomes.count - 1])
    if !reason.isEmpty { #expect(response.route.legs[0].failure?.message.contains(reason) == true) }
    // The next request knows: it uses the connection that is open, and says that.
    let (again, _) = try await explained(client, scene.request(), scene)
    #expect(again.route.legs.map(\.outcome) == [.won] && again.reused)
    #expect(again.remote == response.remote)
    await client.shutdown()
  }

  @Test func anImpostorInQuarantineIsLeftOutAndNamed() async throws {
    let scene = try await Scene([.wrongCertificate, .works])
    defer { scene.stop() }
    let client = try await scene.client()
    _ = try await explained(client, scene.request(), scene)
    let (response, text) = try await explained(client, scene.request(fresh: true), scene)
    #expect(way(text) == Self.direct)
    #expect(response.route.legs.map(\.address) == [scene.listed[1]])
    let impostor = try #require(response.route.plan.candidates.first { $0.address == scene.listed[0] })
    #expect(impostor.failure == .certificateName(presented: ["portal.test"]))
    // The text says when, however many lines that takes.
    let words = text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    #expect(
      words.contains(try #require(impostor.excluded).description)
        && words.contains("; a request tries it again in"), "\(text)")
    await client.shutdown()
  }

  /// The plan is never empty, and says so: first that everything failed, then that the circuits are open; an impostor alone is
  /// no way at all.
  @Test func whatIsLeftIsDNS() async throws {
    let scene = try await Scene([.refuses, .refuses])
    defer { scene.stop() }
    let client = try await scene.client()
    let (first, text) = try await explained(client, scene.request(fresh: true), scene)
    #expect(way(text) == "DNS; every listed address that was tried failed")
    #expect(first.route.fallback == .allFailed && first.remote?.address == scene.unlisted)
    #expect(first.route.legs.map(\.outcome) == [.failed, .failed, .won])
    for _ in 0..<2 { _ = try await explained(client, scene.request(fresh: true), scene) }
    let (open, openText) = try await explained(client, scene.request(fresh: true), scene)
    #expect(way(openText) == "DNS; all listed addresses failed too often of late")
    #expect(open.route.plan.startsTwo && open.route.plan.legs.count > 1)
    await client.shutdown()

    let impostor = try await Scene([.wrongCertificate])
    defer { impostor.stop() }
    let other = try await impostor.client()
    _ = try await explained(other, impostor.request(), impostor)
    let (excluded, excludedText) = try await explained(other, impostor.request(fresh: true), impostor)
    #expect(way(excludedText) == "DNS; all listed addresses are excluded")
    #expect(excluded.route.legs.map(\.address) == [impostor.unlisted])
    await other.shutdown()
  }

  @Test func whyTheListIsNotUsed() async throws {
    let scene = try await Scene([.works])
    defer { scene.stop() }
    let past = Date(timeIntervalSinceNow: -60)
    let cases: [(EndpointList?, RequestOptions.Routing, RoutePlan.DirectOff?, String)] = [
      (scene.list(expires: past), .automatic, .expired, "DNS; the list has expired"),
      (scene.list(port: 1), .automatic, .port, "DNS; the list is for another port of the host"),
      (nil, .automatic, .noList, "DNS; the host is not in the list"),
      (scene.list(), .dns, .flag, "DNS, as asked for; direct mode is off"),
      (scene.list(), .pinned(scene.listed[0]), nil, "direct, from the list, policy pinned"),
      (
        scene.list(), .pinned(scene.unlisted), .flag,
        "to \(scene.unlisted), as asked for, which is not in the list"
      ),
    ]
    for (list, routing, off, words) in cases {
      let client = try await scene.client { $0.list = list.map { .list($0) } ?? .none }
      var request = try scene.request()
      request.options.routing = routing
      let (response, text) = try await explained(client, request, scene)
      #expect(way(text) == words)
      #expect(response.route.plan.directOff == off)
      #expect(response.route.fallback == nil)
      await client.shutdown()
    }
    // An address is looked up nowhere.
    let client = try await scene.client()
    var request = try NetOptRequest(.get, "https://\(scene.unlisted):\(scene.port)/")
    request.options.verification = .none
    #expect(way(try await explained(client, request, scene).text) == "to the address in the URL")
    await client.shutdown()
    let proxied = try await scene.client { $0.proxy = .url("http://127.0.0.1:1") }
    let error = await #expect(throws: NetOptError.self) { try await proxied.execute(try scene.request()) }
    let route = try #require(error?.route)
    let text = Waterfall(failed: "https://api.test/", route).text(columns: 100)
    #expect(way(text) == "through the proxy; direct mode is off")
    check(route, scene, text)
    await proxied.shutdown()
  }

  @Test func attemptsAreExplainedEachByItself() async throws {
    let scene = try await Scene(
      [.works, .works],
      directives: """
        location = /busy { add_header Retry-After 1 always; return 503; }
        location = /away { add_header Retry-After 30 always; return 503; }
        location = /misdirected { return 421; }
        """)
    defer { scene.stop() }
    for (target, status) in [("/busy", 503), ("/misdirected", 421)] {
      let client = try await scene.client()
      let (response, text) = try await explained(client, scene.request(target), scene)
      #expect(response.status == status && response.attempts > 1)
      #expect(response.otherAttempts.count == response.attempts - 1)
      #expect(text.contains("ATTEMPT") && text.contains("answered \(status)"), "\(text)")
      for attempt in response.otherAttempts {
        let route = try #require(attempt.route)
        check(route, scene, Waterfall(failed: "https://api.test/", route).text(columns: 100))
        #expect(text.contains("\(try #require(attempt.remote))"))
      }
      await client.shutdown()
    }
    // One that asks for a longer rest than is waited for: the answer is the caller's, and the next request goes elsewhere.
    let client = try await scene.client()
    let (away, _) = try await explained(client, scene.request("/away"), scene)
    #expect(away.status == 503 && away.attempts == 1 && away.remote?.address == scene.listed[0])
    let (next, text) = try await explained(client, scene.request(fresh: true), scene)
    #expect(next.status == 200 && next.route.legs.map(\.address) == [scene.listed[1]])
    let reason = try #require(next.route.plan.candidates.first { $0.address == scene.listed[0] }?.excluded)
    #expect(reason == .resting(for: .seconds(30), last: LegFailure(.other, "it answered 503")))
    #expect(text.contains(reason.description.prefix(40)), "\(text)")
    await client.shutdown()
  }

  @Test func aCopyIsExplainedAsOne() async throws {
    let scene = try await Scene([.works, .works])
    defer { scene.stop() }
    let client = try await scene.client()
    var request = try scene.request()
    request.options.hedges = true
    // How long answers take is known after some.
    for _ in 0..<(LatencyQuantile.leastSamples + 10) {
      _ = try await client.execute(request).body.collect(upTo: 100)
    }
    request.url = try HTTPURL("https://\(Self.host):\(scene.port)/slow?s=0.5")
    let (response, text) = try await explained(client, request, scene)
    #expect(response.otherAttempts.count == 1)
    #expect(text.contains("another one was answered first"), "\(text)")
    await client.shutdown()
  }

  /// A second start: what was learned is in the scores, and nothing is probed.
  @Test func aSecondStartExplainsItsScores() async throws {
    let scene = try await Scene([.works, .works])
    defer { scene.stop() }
    let directory = try TemporaryDirectory.make("rankings")
    for isSecond in [false, true] {
      let client = try await scene.client {
        $0.rankingHistory = .directory(directory)
        $0.probing.atStart = !isSecond
      }
      if !isSecond { _ = try await client.probe() }
      let (response, text) = try await explained(client, scene.request(), scene)
      #expect(way(text) == Self.direct)
      #expect(response.route.plan.candidates.allSatisfy { $0.score != nil })
      #expect(!text.contains("unknown"))
      await client.shutdown()
    }
  }

  /// In another network nothing is known, nobody is left out and no connection is used again; back in the first one what was
  /// known is known again.
  @Test(.enabled("\(NetworkNamespace.missing)") { NetworkNamespace.isAvailable })
  func anotherNetworkIsANewStart() async throws {
    let namespace = try NetworkNamespace()
    defer { namespace.end() }
    try namespace.addLink("eth7")
    try namespace.ip("addr add 192.0.2.10/24 dev eth7")
    try namespace.ip("route add default via 192.0.2.1")
    let addresses = IPAddress.freshLoopback(2)
    let (server, client) = try namespace.run {
      // Nobody is at the first one, which is tried first as long as nothing is known.
      let server = try LoopbackServer(
        .raw { exchange in try exchange.respond(200, text: "here") }, on: addresses[1])
      let port = server.endpoint.port
      let endpoints = addresses.enumerated().map { ListedEndpoint($1, weight: 1000 - $0) }
      var configuration = ClientConfiguration()
      configuration.list = .list(
        EndpointList(serial: 1, hosts: [Self.host: HostEntry(port: port, endpoints: endpoints)]))
      configuration.allowPrivateAddresses = true
      configuration.proxy = .none
      configuration.rankingHistory = .none
      configuration.probing.atStart = false
      configuration.probing.inBackground = false
      return (server, try NetOptClient(configuration))
    }
    let request = try NetOptRequest(.get, "http://\(Self.host):\(server.endpoint.port)/")
    func explained() async throws -> (response: NetOptResponse, text: String) {
      let response = try await client.execute(request)
      _ = try await response.body.collect(upTo: 100)
      let exchange = NetOptCommands.Exchange(.get, response, bodyBytes: 4)
      return (response, Waterfall(exchange).text(columns: 100))
    }
    func score(_ response: NetOptResponse) -> Duration? {
      response.route.plan.candidates.first { $0.address == addresses[1] }?.score
    }
    /// The first request that the client sends in another network.
    func explainedAfter(_ gateway: String) async throws -> (response: NetOptResponse, text: String) {
      try namespace.ip("route replace default via \(gateway)")
      var found = try await explained()
      try await wait(for: "a new connection") {
        if !found.response.reused { return true }
        found = try await explained()
        return !found.response.reused
      }
      return found
    }

    let (first, firstText) = try await explained()
    #expect(first.route.legs.map(\.outcome) == [.failed, .won] && firstText.contains("unknown"))
    let (known, knownText) = try await explained()
    #expect(known.reused && score(known) != nil && knownText.contains("pooled connection"), "\(knownText)")

    let (there, thereText) = try await explainedAfter("192.0.2.2")
    #expect(there.route.legs.map(\.outcome) == [.failed, .won], "\(thereText)")
    #expect(there.route.plan.candidates.allSatisfy { $0.score == nil && $0.excluded == nil })
    #expect(there.route.fallback == nil && way(thereText) == Self.direct)
    #expect(thereText.contains("new connection") && thereText.contains("unknown"), "\(thereText)")

    let (back, backText) = try await explainedAfter("192.0.2.1")
    #expect(back.route.legs.map(\.outcome) == [.won] && score(back) != nil, "\(backText)")
    #expect(way(backText) == Self.direct && backText.contains("new connection"), "\(backText)")
    await client.shutdown()
    server.stop()
  }
}
