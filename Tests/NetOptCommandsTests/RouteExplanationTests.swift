import FoundationEssentials
import NetOpt
import NetOptCore
import NetOptRouting
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCommands

/// Tests of the route report of a response (`RouteReport`), and of the text that `netopt get -v` prints for
/// the report. The servers are real. Report and text must be complete and correct whatever the servers do.
@Suite struct RouteExplanationTests {
  private static let host = "api.test"

  /// The behaviour of the server at a listed address.
  enum Kind: Sendable {
    /// nginx serves the host with a valid certificate.
    case works
    /// No server listens, so the kernel refuses connections.
    case refuses
    /// nginx has a certificate for another host, portal.test.
    case wrongCertificate
    /// A loopback server with this behaviour listens.
    case behaves(LoopbackServer.Behaviour)
  }

  /// The servers of a host. The list has addresses of the host, and a client without measurements tries them
  /// in order. DNS returns one more address, which is not in the list and always works.
  private struct Scene {
    /// The addresses of the list, in order, and then the address that DNS returns.
    let addresses: [IPAddress]
    /// The port of the servers at all addresses.
    let port: UInt16
    /// The server at the address that DNS returns, and at the listed addresses of the kinds `works` and
    /// `wrongCertificate`.
    let origin: NginxOrigin
    let dns: DNSServer
    /// The servers at the listed addresses of the kind `behaves`.
    let others: [LoopbackServer]

    /// Starts the servers.
    ///
    /// - Parameters:
    ///   - kinds: the behaviour at each listed address, in order.
    ///   - directives: additional directives for nginx.
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

    /// The addresses in the list.
    var listed: [IPAddress] { addresses.dropLast() }
    /// The address that DNS returns.
    var unlisted: IPAddress { addresses[addresses.count - 1] }

    /// Makes a client that sends no probes and saves no ranking.
    ///
    /// - Parameter change: changes the configuration of the client.
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

    /// Returns the list.
    ///
    /// - Parameters:
    ///   - port: the port of the host in the list. Default: the port of the servers.
    ///   - expires: the expiry of the list; `nil` for a list that does not expire.
    func list(port: UInt16? = nil, expires: Date? = nil) -> EndpointList {
      // The client tries the higher weight first until it has measurements.
      let endpoints = listed.enumerated().map { ListedEndpoint($1, weight: 1000 - $0) }
      return EndpointList(
        serial: 1, expires: expires,
        hosts: [RouteExplanationTests.host: HostEntry(port: port ?? self.port, endpoints: endpoints)])
    }

    /// Makes a request to the host.
    ///
    /// - Parameter fresh: whether the request needs a new connection.
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

  /// Sends a request, checks that the route report is complete, and returns the response and the text that
  /// `get -v` prints.
  private func explained(
    _ client: NetOptClient, _ request: NetOptRequest, _ scene: Scene
  ) async throws -> (response: NetOptResponse, text: String) {
    let response = try await client.execute(request)
    let body = try await response.body.collect(upTo: 100_000)
    let exchange = FinishedExchange(request.method, response, bodyBytes: Int64(body.count))
    let text = Waterfall(exchange).text(columns: 100)
    check(response.route, scene, text)
    let winner = try #require(response.route.winner)
    #expect(winner.address == response.remote?.address)
    #expect(winner.source == response.route.source && winner.reused == response.reused)
    let connection = winner.reused ? "pooled" : "new"
    #expect(text.contains("SERVER   \(try #require(response.remote)), \(connection) connection"), "\(text)")
    return (response, text)
  }

  /// Checks that a route report is complete and consistent, and that the text shows all of it.
  private func check(_ route: RouteReport, _ scene: Scene, _ text: String) {
    let plan = route.plan
    #expect(!plan.legs.isEmpty)
    if plan.directOff == nil, plan.hasCandidates {
      // The plan has a leg for each listed address, or states why it excludes the address.
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

  /// Returns the text of the line ROUTE; `nil` if there is no such line.
  private func routeText(_ text: String) -> String? {
    text.split(separator: "\n").first { $0.hasPrefix("ROUTE    ") }.map { String($0.dropFirst(9)) }
  }

  /// The line ROUTE of a request that an address of the list answered.
  private static let direct = "direct, from the list, policy fastest"

  @Test(
    "a request takes the first working address of the list, and the report states why others failed",
    arguments: [
      (Kind.works, [RouteReport.Outcome.won], ""), (.refuses, [.failed, .won], "refused"),
      (.behaves(.blackHole), [.cancelled, .won], ""), (.behaves(.silent), [.cancelled, .won], ""),
      (.wrongCertificate, [.failed, .won], "portal.test"),
    ])
  func nextAddress(kind: Kind, outcomes: [RouteReport.Outcome], reason: String) async throws {
    let scene = try await Scene([kind, .works])
    defer { scene.stop() }
    let client = try await scene.client()
    let (response, text) = try await explained(client, scene.request(), scene)
    #expect(routeText(text) == Self.direct)
    // On a busy machine the DNS leg may have started too.
    let legs = response.route.legs
    #expect(legs.prefix(outcomes.count).map(\.outcome) == outcomes)
    #expect(legs.prefix(outcomes.count).map(\.address) == scene.listed.prefix(outcomes.count).map { $0 })
    #expect(legs.dropFirst(outcomes.count).allSatisfy { $0.outcome == .cancelled })
    #expect(response.remote?.address == scene.listed[outcomes.count - 1])
    if !reason.isEmpty { #expect(response.route.legs[0].failure?.message.contains(reason) == true) }
    // The next request uses the open connection, and its report says so.
    let (again, _) = try await explained(client, scene.request(), scene)
    #expect(again.route.legs.map(\.outcome) == [.won] && again.reused)
    #expect(again.remote == response.remote)
    await client.shutdown()
  }

  @Test("the plan excludes an address with a wrong certificate, and the text says when it is tried again")
  func quarantinedAddress() async throws {
    let scene = try await Scene([.wrongCertificate, .works])
    defer { scene.stop() }
    let client = try await scene.client()
    _ = try await explained(client, scene.request(), scene)
    let (response, text) = try await explained(client, scene.request(fresh: true), scene)
    #expect(routeText(text) == Self.direct)
    #expect(response.route.legs.map(\.address) == [scene.listed[1]])
    let impostor = try #require(response.route.plan.candidates.first { $0.address == scene.listed[0] })
    #expect(impostor.failure == .certificateName(presented: ["portal.test"]))
    // The text gives the time of the next try; it may be broken over several lines.
    let words = text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    #expect(
      words.contains(try #require(impostor.excluded).description)
        && words.contains("; a request tries the address again in"), "\(text)")
    await client.shutdown()
  }

  /// The test uses two hosts. Both addresses of the first host refuse connections. The report says that no
  /// listed address worked. After three failures of each address (`Circuit.threshold`), it says that no
  /// listed address is usable. The only address of the second host has a wrong certificate, so the plan of
  /// the second request excludes it.
  @Test("a request falls back to DNS when all listed addresses fail or are excluded, and says why")
  func fallbackToDNS() async throws {
    let scene = try await Scene([.refuses, .refuses])
    defer { scene.stop() }
    let client = try await scene.client()
    let (first, text) = try await explained(client, scene.request(fresh: true), scene)
    #expect(routeText(text) == "DNS; no listed address worked for this request")
    #expect(first.route.fallback == .allFailed && first.remote?.address == scene.unlisted)
    #expect(first.route.legs.map(\.outcome) == [.failed, .failed, .won])
    for _ in 0..<2 { _ = try await explained(client, scene.request(fresh: true), scene) }
    let (open, openText) = try await explained(client, scene.request(fresh: true), scene)
    #expect(routeText(openText) == "DNS; no listed address is usable; some failed or sent Retry-After")
    // After three failures each, no listed address is usable. So the plan starts two legs at once: one of
    // these addresses, which may work again, and DNS.
    #expect(open.route.plan.startsTwo && open.route.plan.legs.count > 1)
    await client.shutdown()

    let impostor = try await Scene([.wrongCertificate])
    defer { impostor.stop() }
    let other = try await impostor.client()
    _ = try await explained(other, impostor.request(), impostor)
    let (excluded, excludedText) = try await explained(other, impostor.request(fresh: true), impostor)
    #expect(routeText(excludedText) == "DNS; all listed addresses are excluded")
    #expect(excluded.route.legs.map(\.address) == [impostor.unlisted])
    await other.shutdown()
  }

  @Test("the route states why a request does not use the list, or that it uses a pinned address")
  func unusedList() async throws {
    let scene = try await Scene([.works])
    defer { scene.stop() }
    let past = Date(timeIntervalSinceNow: -60)
    let cases: [(EndpointList?, RequestOptions.Routing, RoutePlan.DirectOff?, String)] = [
      (scene.list(expires: past), .automatic, .expired, "DNS; the list has expired"),
      (
        scene.list(port: 1), .automatic, .port,
        "DNS; the list has the host for port 1, not for port \(scene.port)"
      ),
      (nil, .automatic, .noList, "DNS; there is no list, or the host is not in it"),
      (scene.list(), .dns, .requested, "DNS, as requested; the list is not used"),
      (scene.list(), .pinned(scene.listed[0]), nil, "direct, from the list, policy pinned"),
      (
        scene.list(), .pinned(scene.unlisted), .requested,
        "to the pinned address \(scene.unlisted), which is not in the list"
      ),
    ]
    for (list, routing, off, words) in cases {
      let client = try await scene.client { $0.list = list.map { .list($0) } ?? .none }
      var request = try scene.request()
      request.options.routing = routing
      let (response, text) = try await explained(client, request, scene)
      #expect(routeText(text) == words)
      #expect(response.route.plan.directOff == off)
      #expect(response.route.fallback == nil)
      await client.shutdown()
    }
    // A URL with an IP address needs no DNS lookup.
    let client = try await scene.client()
    var request = try NetOptRequest(.get, "https://\(scene.unlisted):\(scene.port)/")
    request.options.verification = .none
    #expect(routeText(try await explained(client, request, scene).text) == "to the address in the URL")
    await client.shutdown()
    let proxied = try await scene.client { $0.proxy = .url("http://127.0.0.1:1") }
    let error = await #expect(throws: NetOptError.self) { try await proxied.execute(try scene.request()) }
    let route = try #require(error?.route)
    let text = Waterfall(failed: "https://api.test/", route).text(columns: 100)
    #expect(routeText(text) == "through the proxy; the list is not used")
    check(route, scene, text)
    await proxied.shutdown()
  }

  @Test("each attempt has its own report, and an address that asks for a long pause is excluded")
  func otherAttempts() async throws {
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
    // The server asks for a longer pause than the client waits. The client returns this response, and sends
    // the next request to another address.
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

  @Test("the report shows the attempt of a hedged request that another attempt overtook")
  func hedgedRequest() async throws {
    let scene = try await Scene([.works, .works])
    defer { scene.stop() }
    let client = try await scene.client()
    var request = try scene.request()
    request.options.hedges = true
    // The client knows the latency of responses only after `LatencyQuantile.leastSamples` samples.
    for _ in 0..<(LatencyQuantile.leastSamples + 10) {
      _ = try await client.execute(request).body.collect(upTo: 100)
    }
    // The server answers this request after 0.5 s, so the client starts a hedge.
    request.url = try HTTPURL("https://\(Self.host):\(scene.port)/slow?s=0.5")
    let (response, text) = try await explained(client, request, scene)
    #expect(response.otherAttempts.count == 1)
    #expect(text.contains("another attempt was answered first"), "\(text)")
    await client.shutdown()
  }

  /// The second client reads the saved ranking and sends no probes, but its candidates have scores.
  @Test("a second client without probes explains its route with the saved scores")
  func savedScores() async throws {
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
      #expect(routeText(text) == Self.direct)
      #expect(response.route.plan.candidates.allSatisfy { $0.score != nil })
      #expect(!text.contains("unknown"))
      await client.shutdown()
    }
  }

  /// In another network the client starts without scores, excludes no candidate and reuses no connection.
  /// Back in the first network, the client has its earlier scores again.
  @Test(
    "a client starts without scores in a new network and restores them in the old one",
    .enabled("\(NetworkNamespace.missing)") { NetworkNamespace.isAvailable })
  func networkChange() async throws {
    let namespace = try NetworkNamespace()
    defer { namespace.end() }
    try namespace.addLink("eth7")
    try namespace.ip("addr add 192.0.2.10/24 dev eth7")
    try namespace.ip("route add default via 192.0.2.1")
    let addresses = IPAddress.freshLoopback(2)
    let (server, client) = try namespace.run {
      // No server listens on the first address, which the client tries first until it has measurements.
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
      let exchange = FinishedExchange(.get, response, bodyBytes: 4)
      return (response, Waterfall(exchange).text(columns: 100))
    }
    func score(_ response: NetOptResponse) -> Duration? {
      response.route.plan.candidates.first { $0.address == addresses[1] }?.score
    }
    /// Changes the default gateway and returns the first response over a new connection.
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
    #expect(there.route.fallback == nil && routeText(thereText) == Self.direct)
    #expect(thereText.contains("new connection") && thereText.contains("unknown"), "\(thereText)")

    let (back, backText) = try await explainedAfter("192.0.2.1")
    #expect(back.route.legs.map(\.outcome) == [.won] && score(back) != nil, "\(backText)")
    #expect(routeText(backText) == Self.direct && backText.contains("new connection"), "\(backText)")
    await client.shutdown()
    server.stop()
  }
}
