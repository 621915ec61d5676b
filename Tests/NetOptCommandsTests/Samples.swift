import FoundationEssentials
import NetOptCore
import NetOptRouting

/// Sample responses, routes and errors for several tests.
enum Samples {
  /// Three attempts of a call. The connection of the first one died. The second one received a 503, which the
  /// call did not return to its caller. The third one is a hedge, and another attempt was answered first.
  static let attempts = {
    let remote = IPEndpoint(IPAddress("203.0.113.7") ?? .loopback, port: 443)
    return [
      AttemptReport(
        number: 1, reason: .first, started: .zero, ended: .milliseconds(12),
        outcome: .failed(NetOptError(.sendFailed, phase: .send, "the connection\u{1b} died")), remote: remote,
        sends: 1),
      AttemptReport(
        number: 2, reason: .retry, started: .milliseconds(12), ended: .milliseconds(30),
        outcome: .answered(status: 503), remote: remote, sends: 1),
      AttemptReport(
        number: 3, reason: .hedge, started: .milliseconds(70), ended: .milliseconds(80), outcome: .overtaken,
        sends: 0),
    ]
  }()

  /// The date of each `Run`: 2026-11-21T00:00:00Z.
  static let now = Date(timeIntervalSince1970: 1_795_219_200)

  /// Parses an address. Traps if the text is not an address.
  static func address(_ text: String) -> IPAddress {
    guard let address = IPAddress(text) else { preconditionFailure("\(text) is no address") }
    return address
  }

  static let origin = Origin(.https, host: "api.example.com")

  /// A route on which the first listed address refused the connection, and the second one won.
  static let direct = RouteReport(
    plan: RoutePlan(
      origin: origin, policy: .fastest,
      candidates: [
        .init(address("203.0.113.7"), score: .microseconds(20_100), source: .list),
        .init(address("203.0.113.9"), score: .microseconds(24_240), source: .list),
        .init(address("2001:db8::7"), score: nil, source: .list),
        .init(
          address("192.0.2.66"), score: nil, source: .list, excluded: .failures(inARow: 3, last: nil)),
      ],
      legs: [.init(.address(address("203.0.113.7")), source: .list), .init(.dns, source: .dns)]),
    legs: [
      .init(
        address: address("203.0.113.7"), source: .list, started: .zero, ended: .microseconds(1200),
        outcome: .failed, failure: LegFailure(.refused, "connection refused")),
      .init(
        address: address("203.0.113.9"), source: .list, started: .microseconds(1200),
        connected: .microseconds(21_300), secured: .microseconds(42_500), ended: .microseconds(42_500),
        outcome: .won),
    ])

  /// A route on which the DNS leg won, because the listed address accepted the connection but did not finish
  /// the handshake.
  static let fallback = RouteReport(
    plan: RoutePlan(
      origin: origin, policy: .fastest,
      candidates: [.init(address("203.0.113.7"), score: nil, source: .list)],
      legs: [.init(.address(address("203.0.113.7")), source: .list), .init(.dns, source: .dns)]),
    legs: [
      .init(
        address: address("203.0.113.7"), source: .list, started: .zero, connected: .milliseconds(20),
        ended: .milliseconds(560), outcome: .cancelled),
      .init(
        address: address("198.51.100.4"), source: .dns, started: .milliseconds(500),
        connected: .milliseconds(530), secured: .milliseconds(560), ended: .milliseconds(560), outcome: .won),
    ])

  /// The route of a call that waited for the race of another call (`RouteReport.isShared`). Every leg of that
  /// race failed, and the planner suspects that the network is down.
  static let shared = {
    let plan = RoutePlan(
      origin: origin, policy: .fastest, candidates: lost.plan.candidates, legs: lost.plan.legs,
      suspectsNetwork: true)
    var route = RouteReport(plan: plan, legs: lost.legs)
    route.isShared = true
    return route
  }()

  /// A route on which both legs failed: the listed address has a wrong certificate, and no DNS server
  /// answered.
  static let lost = RouteReport(
    plan: RoutePlan(
      origin: origin, policy: .fastest,
      candidates: [.init(address("203.0.113.7"), score: .milliseconds(5), source: .list)],
      legs: [.init(.address(address("203.0.113.7")), source: .list), .init(.dns, source: .dns)]),
    legs: [
      .init(
        address: address("203.0.113.7"), source: .list, started: .zero, connected: .milliseconds(5),
        ended: .milliseconds(12), outcome: .failed,
        failure: LegFailure(
          .certificateName(presented: ["*.portal.lan"]),
          "the certificate is for *.portal.lan, not for api.example.com; correct the list")),
      .init(
        address: nil, source: .dns, started: .milliseconds(12), ended: .milliseconds(512), outcome: .failed,
        failure: LegFailure(.resolve, "no name server answered")),
    ])

  /// The error of a call with the route `lost`.
  static let error = NetOptError(
    .connectFailed, phase: .connect, "nobody answered for api.example.com; check the network",
    endpoint: IPEndpoint(address("203.0.113.7"), port: 443), route: lost)

  /// The durations of the phases of a call with the route `direct`. Their sum is 63.8 ms.
  static var timings: Timings {
    var timings = Timings()
    timings.queue = .microseconds(1200)
    timings.connect = .microseconds(20_100)
    timings.tls = .microseconds(21_200)
    timings.send = .microseconds(90)
    timings.wait = .microseconds(18_900)
    timings.transfer = .microseconds(2_310)
    return timings
  }

  /// Makes a response.
  ///
  /// - Parameters:
  ///   - body: the chunks of the body. The response to a HEAD request has none.
  ///   - end: the error that the body throws after its last chunk; `nil` for a complete body.
  ///   - tls: the TLS version and verification of the connection; `nil` for plain HTTP.
  static func response(
    to request: NetOptRequest, status: Int = 200, body: [String] = ["hel", "lo\n"], end: NetOptError? = nil,
    route: RouteReport = direct, tls: TLSReport? = TLSReport(verified: true, version: "TLSv1.3")
  ) -> NetOptResponse {
    NetOptResponse(
      url: request.url,
      head: ResponseHead(
        status: status, version: .http2,
        fields: ["content-type": "text/plain", "set-cookie": "a=1", "set-cookie": "b=\"2\""]),
      body: ResponseBody(ScriptedBody(request.method == .head ? [] : body, end: end, timings: timings)),
      route: route, remote: IPEndpoint(address("203.0.113.9"), port: 443), tls: tls)
  }
}
