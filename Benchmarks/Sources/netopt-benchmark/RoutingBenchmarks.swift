import FoundationEssentials
import NetOpt

/// What a plan costs.
enum PlanningBenchmark {
  static let options = ["--endpoints", "-n", "--only"]

  static func run(_ options: Options) throws -> String {
    let count = try options.count("--endpoints", 100)
    let plans = try options.count("-n", 200_000)
    let only = options.text("--only")
    guard [nil, "unchanged", "changed"].contains(only) else {
      throw UsageError("--only wants unchanged or changed")
    }
    let origin = Origin(.https, host: "api.bench.example")
    let addresses = (0..<count).map { IPAddress(v4: 0x0a00_0001 + UInt32($0)) }
    let entry = HostEntry(port: 443, endpoints: addresses.map { ListedEndpoint($0) })
    var planner = RoutePlanner(list: EndpointList(hosts: [origin.host: entry]), seed: 1)
    let wall = Date()
    var now = MonotonicInstant(nanoseconds: 1_000_000_000)
    for (index, address) in addresses.enumerated() {
      let report = ConnectReport(connect: .milliseconds(index + 10), tls: .milliseconds(index + 10))
      planner.record(probe: .success(report), of: address, for: origin, at: now)
    }
    func nanoseconds(_ name: String, _ body: () -> Void) -> Double {
      if let only, only != name { return 0 }
      let start = Cost.now
      body()
      return (Cost.now.wallSeconds - start.wallSeconds) / Double(plans) * 1e9
    }
    var legs = 0
    let unchanged = nanoseconds("unchanged") {
      for _ in 0..<plans { legs += planner.plan(for: origin, now: now, wall: wall).legs.count }
    }
    let changed = nanoseconds("changed") {
      for index in 0..<plans {
        now = now + .milliseconds(1)
        let report = ConnectReport(connect: .milliseconds(index % 50 + 10), tls: .milliseconds(10))
        planner.record(probe: .success(report), of: addresses[index % count], for: origin, at: now)
        legs += planner.plan(for: origin, now: now, wall: wall).legs.count
      }
    }
    precondition(legs == (only == nil ? 2 : 1) * plans * (count + 1))
    return #"{"endpoints":\#(count),"plans":\#(plans),"unchanged_ns":\#(unchanged),"changed_ns":\#(changed)}"#
  }
}

/// What reading and checking a list takes.
enum ListBenchmark {
  static let options = ["--endpoints", "-n"]

  static func run(_ options: Options) throws -> String {
    let count = try options.count("--endpoints", 10_000)
    let perHost = 10
    let hosts = (0..<count / perHost).map { host in
      let endpoints = (0..<perHost).map { index in
        let number = host * perHost + index
        return #"{"ip":"9.\#(number >> 16 & 255).\#(number >> 8 & 255).\#(number & 255)","weight":100}"#
      }
      return #""h\#(host).bench.example":{"port":443,"endpoints":[\#(endpoints.joined(separator: ","))]}"#
    }
    let text =
      #"{"schema":1,"serial":1,"issued":"2026-01-01T00:00:00Z","hosts":{\#(hosts.joined(separator: ","))}}"#
    let bytes = Array(text.utf8)
    var times: [Double] = []
    for _ in 0..<(try options.count("-n", 15)) {
      let start = Cost.now.wallSeconds
      let list = try EndpointList(bytes, file: "the list", rules: ListRules(now: Date()))
      times.append((Cost.now.wallSeconds - start) * 1e3)
      precondition(list.endpointCount == hosts.count * perHost)
    }
    times.sort()
    return #"{"endpoints":\#(count),"bytes":\#(bytes.count),"median_ms":\#(times[times.count / 2])}"#
  }
}
