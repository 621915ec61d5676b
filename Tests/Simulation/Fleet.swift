import FoundationEssentials
import NetOptCore
import NetOptRouting

/// Many clients of one host, whose endpoints are nearly equally fast. Each client probes all endpoints,
/// measures slightly different times, and chooses the endpoint that its plan tries first.
///
/// The rule: no endpoint gets more than twice its share of the clients. The shares are proportional to the
/// weights in the list.
package struct Fleet {
  /// Descriptions of the endpoints that got too many clients.
  package private(set) var faults: [String] = []

  /// Lets the clients choose their endpoints, and checks the rule.
  ///
  /// - Parameters:
  ///   - seed: determines the endpoints and the measured times.
  ///   - drawsDiffer: whether the planner of each client draws different random numbers, as in real clients.
  ///     If not, the planners all have the same seed, most clients choose the same endpoint, and the rule
  ///     breaks.
  package init(seed: UInt64, clients: Int = 1000, drawsDiffer: Bool = true) {
    var random = SplitMix64(seed: seed)
    let count = random.number(in: 2...8)
    let origin = Origin(.https, host: "api.example")
    let endpoints = (0..<count).map {
      ListedEndpoint(IPAddress(v4: 0xc000_0201 + UInt32($0)), weight: random.number(in: 1...3) * 100)
    }
    let list = EndpointList(hosts: [origin.host: HostEntry(endpoints: endpoints)])
    let base = Double(random.number(in: 10...150))
    // The ready time of each endpoint in milliseconds. The times differ by up to 5 %. Each client measures
    // them with an error of up to 1 %.
    let times = endpoints.map { _ in base * Double.random(in: 1...1.05, using: &random) }
    let now = MonotonicInstant(nanoseconds: 1_000_000_000_000)
    let today = Date(timeIntervalSince1970: 1_795_219_200)
    var chosen: [IPAddress: Int] = [:]
    for client in 0..<clients {
      var planner = RoutePlanner(list: list, seed: seed &* 1_000_003 &+ UInt64(drawsDiffer ? client : 0))
      for (endpoint, time) in zip(endpoints, times) {
        let half = Duration.milliseconds(time / 2 * Double.random(in: 0.99...1.01, using: &random))
        let report = ConnectReport(connect: half, tls: half)
        planner.record(probe: .success(report), of: endpoint.address, for: origin, at: now)
      }
      let plan = planner.plan(for: origin, now: now, wall: today)
      if let address = plan.legs.first?.address { chosen[address, default: 0] += 1 }
    }
    let weights = endpoints.reduce(0) { $0 + $1.weight }
    for endpoint in endpoints {
      let fair = Double(clients * endpoint.weight) / Double(weights)
      let got = chosen[endpoint.address] ?? 0
      if Double(got) > 2 * fair {
        faults.append("\(endpoint.address) got \(got) of \(clients) clients; its share is \(Int(fair))")
      }
    }
  }
}
