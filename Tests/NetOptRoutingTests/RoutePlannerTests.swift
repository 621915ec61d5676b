import FoundationEssentials
import NetOptCore
import Testing

@testable import NetOptRouting

/// The legs and candidates of a plan.
@Suite struct RoutePlannerTests {
  private let one = ip("192.0.2.1")
  private let two = ip("192.0.2.2")
  private let six = ip("2001:db8::6")

  /// The default options of a request, with a change.
  private func options(_ change: (inout RequestOptions) -> Void) -> RequestOptions {
    var options = RequestOptions()
    change(&options)
    return options
  }

  @Test func listComesFirstAndDNSLast() {
    var scene = Scene([one, two])
    let plan = scene.plan()
    #expect(plan.origin == scene.origin)
    #expect(plan.policy == .fastest)
    #expect(plan.directOff == nil)
    #expect(plan.noneUsable == nil)
    #expect(!plan.startsTwo)
    #expect(
      plan.legs == [
        RoutePlan.Leg(.address(one), source: .list, stagger: .milliseconds(250)),
        RoutePlan.Leg(.address(two), source: .list, stagger: .milliseconds(250)),
        RoutePlan.Leg(.dns, source: .dns),
      ])
    #expect(
      plan.candidates == [
        RouteReport.Candidate(one, score: nil, source: .list),
        RouteReport.Candidate(two, score: nil, source: .list),
      ])
  }

  @Test("a plan tries measured endpoints by score, and unmeasured ones after them")
  func fastestComesFirst() {
    var scene = Scene([one, two, six])
    scene.probe(one, milliseconds: 80)
    scene.probe(two, milliseconds: 20)
    let plan = scene.plan()
    #expect(plan.addresses == [two, one, six])
    #expect(plan.candidates.map(\.score) == [.milliseconds(20), .milliseconds(80), nil])
  }

  @Test(
    "after one sample, a leg's stagger is three times the ready time, from 50 ms to 2 s",
    arguments: [
      // The ready time of the only sample and the stagger, in milliseconds.
      (20.0, 60), (10, 50), (700, 2000), (100, 300),
    ])
  func stagger(_ ready: Double, _ stagger: Int) {
    var scene = Scene([one])
    scene.probe(one, milliseconds: ready)
    #expect(scene.plan().legs.first?.stagger == .milliseconds(stagger))
  }

  @Test("endpoints without history rank by region and provider, then weight, then list order")
  func orderWithoutHistory() {
    let far = ip("192.0.2.11")
    let heavy = ip("192.0.2.12")
    let sameRegion = ip("192.0.2.13")
    let sameBoth = ip("192.0.2.14")
    let endpoints = [
      ListedEndpoint(far, region: "x", isp: "y"), ListedEndpoint(heavy, weight: 900),
      ListedEndpoint(sameRegion, region: "cn-north", isp: "y"),
      ListedEndpoint(sameBoth, region: "cn-north", isp: "unicom", weight: 1),
    ]
    var scene = Scene(endpoints, configuration: RoutingConfiguration(region: "cn-north", isp: "unicom"))
    #expect(scene.order() == [sameBoth, sameRegion, heavy, far])
    #expect(scene.planner.endpoints(toProbe: scene.origin).map(\.address) == scene.order())
    var elsewhere = Scene(endpoints)
    #expect(elsewhere.order() == [heavy, far, sameRegion, sameBoth])
  }

  @Test(
    "a plan uses the list only for a listed host with endpoints, on the listed port",
    arguments: [
      ("https://b.example/", RoutePlan.DirectOff.noList), ("https://a.example:8443/", .port),
      ("http://a.example/", .port), ("https://A.EXAMPLE./", nil), ("https://empty.example/", .noList),
    ])
  func listedHostAndPort(_ url: String, _ off: RoutePlan.DirectOff?) throws {
    let list = EndpointList(hosts: [
      "a.example": HostEntry(endpoints: [ListedEndpoint(one)]), "empty.example": HostEntry(endpoints: []),
    ])
    var planner = RoutePlanner(list: list, seed: 1)
    let plan = planner.plan(for: try HTTPURL(url).origin, now: .at(0), wall: today)
    #expect(plan.directOff == off)
    #expect(plan.listedPort == (off == .port ? 443 : nil))
    #expect(plan.legs.count == (off == nil ? 2 : 1))
    #expect(plan.endsInDNS)
  }

  @Test("a plan without a list uses DNS alone")
  func noList() {
    var planner = RoutePlanner(list: nil, seed: 1)
    let plan = planner.plan(for: Origin(.https, host: "a.example"), now: .at(0), wall: today)
    #expect(plan.legs == [RoutePlan.Leg(.dns, source: .dns)])
    #expect(plan.directOff == .noList)
    #expect(plan.candidates.isEmpty)
  }

  @Test("a plan uses DNS alone from the moment at which the list expires")
  func expiredList() {
    let list = EndpointList(
      expires: today, hosts: ["a.example": HostEntry(endpoints: [ListedEndpoint(one)])])
    var planner = RoutePlanner(list: list, seed: 1)
    let origin = Origin(.https, host: "a.example")
    #expect(planner.plan(for: origin, now: .at(0), wall: today - 1).directOff == nil)
    let plan = planner.plan(for: origin, now: .at(1), wall: today)
    #expect(plan.directOff == .expired)
    #expect(plan.legs == [RoutePlan.Leg(.dns, source: .dns)])
    #expect(
      planner.plan(for: Origin(.https, host: "b.example"), now: .at(1), wall: today).directOff == .noList)
  }

  @Test("a plan for a request with DNS routing uses DNS alone")
  func dnsRouting() {
    var scene = Scene([one])
    let plan = scene.plan(options { $0.routing = .dns })
    #expect(plan.directOff == .requested)
    #expect(plan.legs == [RoutePlan.Leg(.dns, source: .dns)])
  }

  @Test("a plan for a URL with an IP address connects to this address")
  func addressInURL() {
    var planner = RoutePlanner(list: .builtIn, seed: 1)
    for host in ["192.0.2.1", "2001:db8::6"] {
      let plan = planner.plan(for: Origin(.https, host: host), now: .at(0), wall: today)
      #expect(plan.legs == [RoutePlan.Leg(.address(ip(host)), source: .dns)])
      #expect(plan.directOff == .noList)
    }
  }

  @Test("a plan uses the proxy alone, unless the request sets directDespiteProxy")
  func proxy() {
    var scene = Scene([one])
    let proxy = "http://127.0.0.1:3128"
    let proxied = scene.planner.plan(
      for: scene.origin, proxy: proxy, now: scene.now, wall: today)
    #expect(proxied.legs == [RoutePlan.Leg(.proxy, source: .dns)])
    #expect(proxied.proxy == proxy)
    #expect(proxied.directOff == .proxy)
    let direct = scene.planner.plan(
      for: scene.origin, options: options { $0.directDespiteProxy = true }, proxy: proxy, now: scene.now,
      wall: today)
    #expect(direct.addresses == [one])
    #expect(direct.directOff == nil)
    let literal = scene.planner.plan(
      for: Origin(.http, host: "192.0.2.9"), proxy: proxy, now: scene.now, wall: today)
    #expect(literal.legs == proxied.legs && literal.proxy == proxy)
  }

  @Test("a pinned request uses its address alone, despite a proxy and an open circuit breaker")
  func pinnedAddress() {
    var scene = Scene([one, two])
    for _ in 0..<3 { scene.probe(two, fails: .refused) }
    let listed = scene.planner.plan(
      for: scene.origin, options: options { $0.routing = .pinned(two) }, proxy: "http://127.0.0.1:1",
      now: scene.now, wall: today)
    #expect(listed.legs == [RoutePlan.Leg(.address(two), source: .list)])
    #expect(listed.policy == .pinned)
    #expect(listed.directOff == nil)
    let other = scene.plan(options { $0.routing = .pinned(six) })
    #expect(other.legs == [RoutePlan.Leg(.address(six), source: .dns)])
    #expect(other.directOff == .requested)
  }

  @Test("a request's address family limits the listed endpoints in its plan")
  func addressFamily() {
    var scene = Scene([one, six])
    let v6 = scene.plan(options { $0.family = .v6 })
    #expect(v6.addresses == [six])
    #expect(v6.exclusion(of: one) == .family(.v6))
    let v4 = scene.plan(options { $0.family = .v4 })
    #expect(v4.addresses == [one])
    #expect(v4.exclusion(of: six) == .family(.v4))
    #expect(scene.order() == [one, six])
    var only = Scene([six])
    let plan = only.plan(options { $0.family = .v4 })
    #expect(plan.legs == [RoutePlan.Leg(.dns, source: .dns)])
    #expect(plan.noneUsable == .excluded)
    #expect(plan.directOff == nil)
  }

  @Test("a plan multiplexes, except over http, with HTTP/1 requested, or with HTTP/1.1 learned")
  func multiplexing() {
    var scene = Scene([one])
    let http1 = options { $0.version = .http1 }
    #expect(scene.plan().multiplexes)
    #expect(!scene.plan(http1).multiplexes)
    scene.planner.learned(version: .http1_1, for: scene.origin, options: http1)
    #expect(scene.plan().multiplexes)
    scene.planner.learned(version: .http1_1, for: scene.origin, options: RequestOptions())
    #expect(!scene.plan().multiplexes)
    #expect(!scene.plan(options { $0.routing = .dns }).multiplexes)
    #expect(!scene.plan(options { $0.routing = .pinned(two) }).multiplexes)
    scene.planner.learned(version: .http2, for: scene.origin, options: RequestOptions())
    #expect(scene.plan().multiplexes)
    var plain = Scene([one], scheme: .http)
    #expect(!plain.plan().multiplexes)
    #expect(plain.planner.plan(for: Origin(.https, host: "b.example"), now: .at(0), wall: today).multiplexes)
  }

  @Test("the seed of a client decides which of two endpoints of similar speed comes first")
  func seedSpreadsClients() {
    let first = (0..<64).map { seed in
      var scene = Scene([one, two], seed: UInt64(seed))
      scene.probe(one, milliseconds: 100)
      scene.probe(two, milliseconds: 105)
      let order = scene.order()
      var same = Scene([one, two], seed: UInt64(seed))
      same.probe(two, milliseconds: 105)
      same.probe(one, milliseconds: 100)
      #expect(same.order() == order)
      return order[0]
    }
    #expect((16...48).contains(first.count { $0 == one }))
  }

  @Test("the score of an endpoint of a plain HTTP origin is its TCP handshake time")
  func plainHTTPScore() {
    var scene = Scene([one, two], scheme: .http)
    scene.probe(one, milliseconds: 30)
    scene.probe(two, milliseconds: 10)
    let plan = scene.plan()
    #expect(plan.addresses == [two, one])
    #expect(plan.candidates.first?.score == .milliseconds(10))
  }

  @Test("the routing configuration reads NETOPT_REGION and ignores an empty NETOPT_ISP")
  func environment() {
    let environment = ["NETOPT_REGION": "cn-north", "NETOPT_ISP": "", "HOME": "/"]
    #expect(RoutingConfiguration(environment: environment) == RoutingConfiguration(region: "cn-north"))
  }

  @Test("a plan names the failure of a quarantined endpoint, and none for an open circuit breaker")
  func failureOfExcludedEndpoint() {
    var scene = Scene([one, two])
    scene.probe(one, fails: .wrongName)
    for _ in 0..<3 { scene.probe(two, fails: .refused) }
    let candidates = scene.plan().candidates
    #expect(candidates.first { $0.address == one }?.failure == LegFailure.wrongName.kind)
    let shut = candidates.first { $0.address == two }
    #expect(shut != nil && shut?.failure == nil)
  }

  @Test("the planner reports status and probe targets of a listed origin, and nothing for others")
  func endpointStatus() {
    var scene = Scene([
      ListedEndpoint(one, region: "r", isp: "i"), ListedEndpoint(two), ListedEndpoint(six),
    ])
    scene.probe(one, milliseconds: 40)
    scene.probe(two, fails: .wrongName)
    let status = scene.planner.status(of: scene.origin, at: scene.now)
    #expect(status.map(\.endpoint.address) == [one, six, two])
    #expect(status.map(\.rank) == [1, 2, nil])
    #expect(status.map(\.chosen) == [true, false, false])
    #expect(status.map(\.state) == [.closed, .closed, .quarantined])
    #expect(status.map(\.rtt) == [.milliseconds(20), nil, nil])
    #expect(status.map(\.score) == [.milliseconds(40), nil, nil])
    #expect(status[2].excluded == .wrongName(nextCheck: .seconds(2)))
    #expect(status[2].lastFailure == .wrongName)
    #expect(status[0].endpoint.region == "r")
    #expect(scene.planner.status(of: Origin(.https, host: "b.example"), at: scene.now).isEmpty)
    #expect(
      scene.planner.endpoints(toProbe: scene.origin).map(\.description)
        == ["192.0.2.1:443", "192.0.2.2:443", "[2001:db8::6]:443"])
    #expect(scene.planner.endpoints(toProbe: Origin(.http, host: "a.example")).isEmpty)
  }
}
