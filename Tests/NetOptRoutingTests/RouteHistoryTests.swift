import FoundationEssentials
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptRouting

@Suite struct RouteHistoryTests {
  /// The listed endpoints of `origin`: 203.0.113.1 to 203.0.113.3.
  private static let addresses = (1...3).map { IPAddress(v4: 0xcb00_7100 + UInt32($0)) }
  private static let origin = Origin(.https, host: "api.example.com")
  /// The calendar date at which the histories are exported.
  private static let date = Date(timeIntervalSince1970: 1_795_000_000)
  /// The present moment.
  private let now = MonotonicInstant(nanoseconds: 1_000_000_000)

  /// A list with these endpoints for `origin`.
  private static func list(_ addresses: [IPAddress] = addresses) -> EndpointList {
    EndpointList(hosts: ["api.example.com": HostEntry(endpoints: addresses.map { ListedEndpoint($0) })])
  }

  /// A planner without history.
  private func planner(_ list: EndpointList = list()) -> RoutePlanner { RoutePlanner(list: list, seed: 1) }

  /// The addresses of the legs of a new plan, in order; `nil` for the DNS leg.
  private func order(_ planner: inout RoutePlanner) -> [IPAddress?] {
    planner.plan(for: Self.origin, now: now, wall: Self.date).legs.map(\.address)
  }

  /// A planner that has probed its endpoints. The third endpoint is fast, the second is slow, and the first
  /// refused the connection.
  private func experienced() -> RoutePlanner {
    var planner = planner()
    let times = [nil, 80, 20] as [Int64?]
    for (address, time) in zip(Self.addresses, times) {
      let result: Result<ConnectReport, LegError> =
        time.map { .success(ConnectReport(connect: .milliseconds($0), tls: .milliseconds($0))) }
        ?? .failure(LegError(LegFailure(.refused, "refused")))
      planner.record(probe: result, of: address, for: Self.origin, at: now)
    }
    _ = planner.plan(for: Self.origin, now: now, wall: Self.date)
    return planner
  }

  @Test("a history has the first endpoint and the estimates of the endpoints that work")
  func contents() throws {
    let history = experienced().history(at: now, date: Self.date)
    let host = try #require(history.hosts.first)
    #expect(history.hosts.count == 1)
    #expect(host.origin == Self.origin && host.learned == Self.date && host.leader == Self.addresses[2])
    #expect(host.endpoints.map(\.address) == Array(Self.addresses[1...]))
    #expect(host.endpoints[1].ready == .init(smoothed: .milliseconds(40), variation: .milliseconds(20)))
    #expect(host.endpoints[1].roundTrip == .init(smoothed: .milliseconds(20), variation: .milliseconds(10)))
    #expect(planner().history(at: now, date: Self.date).hosts.isEmpty)
  }

  @Test("a planner that adopts a history ranks endpoints by it")
  func adoption() {
    let history = experienced().history(at: now, date: Self.date)
    var next = planner()
    #expect(order(&next) == Self.addresses + [nil])
    var other = planner()
    #expect(other.adopt(history, at: now, date: Self.date) == ["api.example.com"])
    // Endpoints with estimates come first. The endpoint that had failed is unknown, not excluded.
    #expect(order(&other) == [Self.addresses[2], Self.addresses[1], Self.addresses[0], nil])
    #expect(other.adopt(history, at: now, date: Self.date).isEmpty)
    #expect(other.isUsed && !planner().isUsed)
  }

  @Test("a planner that adopts a history keeps its own estimates and skips unlisted endpoints")
  func partialAdoption() throws {
    let history = experienced().history(at: now, date: Self.date)
    var planner = planner(Self.list(Array(Self.addresses[..<2])))
    planner.record(
      probe: .success(ConnectReport(connect: .milliseconds(1), tls: .milliseconds(1))), of: Self.addresses[1],
      for: Self.origin, at: now)
    #expect(planner.adopt(history, at: now, date: Self.date).isEmpty)
    #expect(planner.status(of: Self.origin, at: now).first?.rtt == .milliseconds(1))
    var elsewhere = RoutePlanner(list: EndpointList(hosts: [:]), seed: 1)
    #expect(elsewhere.adopt(history, at: now, date: Self.date).isEmpty)
    var none = RoutePlanner(list: nil, seed: 1)
    #expect(none.adopt(history, at: now, date: Self.date).isEmpty)
  }

  /// An endpoint that was fast yesterday and is slow today counts as slow after the first probe.
  @Test("one new measurement outweighs a history that is 23 hours old")
  func oldHistory() {
    let history = experienced().history(at: now, date: Self.date)
    var planner = planner()
    _ = planner.adopt(history, at: now, date: Self.date + 23 * 3600)
    let slow = ConnectReport(connect: .milliseconds(200), tls: .milliseconds(200))
    planner.record(probe: .success(slow), of: Self.addresses[2], for: Self.origin, at: now)
    #expect(order(&planner).first == Self.addresses[1])
  }

  @Test("a change of network clears estimates, circuit breakers and the history")
  func networkChange() {
    var planner = experienced()
    for _ in 0..<2 {
      planner.record(
        probe: .failure(LegError(LegFailure(.refused, "refused"))), of: Self.addresses[0], for: Self.origin,
        at: now)
    }
    #expect(planner.status(of: Self.origin, at: now).contains { $0.state == .open })
    planner.networkChanged(at: now)
    #expect(planner.status(of: Self.origin, at: now).allSatisfy { $0.state == .closed && $0.score == nil })
    #expect(order(&planner) == Self.addresses + [nil])
    #expect(planner.history(at: now, date: Self.date).hosts.isEmpty)
  }

  @Test("a history is usable for a day, and not when it is from the future")
  func usableForADay() {
    let history = experienced().history(at: now, date: Self.date)
    #expect(history.current(at: Self.date.addingTimeInterval(86_399)).hosts.count == 1)
    #expect(history.current(at: Self.date.addingTimeInterval(86_401)).hosts.isEmpty)
    #expect(history.current(at: Self.date.addingTimeInterval(-3600)).hosts.isEmpty)
  }

  @Test("a merge keeps the hosts of both histories, and the older date of an unchanged host")
  func merge() {
    let host = experienced().history(at: now, date: Self.date).hosts[0]
    var old = host
    old.learned = Self.date.addingTimeInterval(-500)
    var other = host
    other.origin = Origin(.https, host: "aaa.example.com")
    let merged = RouteHistory(hosts: [host]).merged(with: RouteHistory(hosts: [old, other]))
    #expect(merged.hosts.map(\.origin.host) == ["aaa.example.com", "api.example.com"])
    // Nothing new was learned, so the host keeps its older date.
    #expect(merged.hosts[1].learned == old.learned)
    old.leader = nil
    #expect(
      RouteHistory(hosts: [host]).merged(with: RouteHistory(hosts: [old])).hosts[0].learned == host.learned)
  }

  // MARK: The file

  @Test("a written history is read back unchanged, and only for its own network")
  func writtenAndRead() throws {
    let history = experienced().history(at: now, date: Self.date)
    let json = history.json(network: "0123456789abcdef")
    #expect(
      json.description == """
        {"schema_version":1,"network":"0123456789abcdef","hosts":[{"scheme":"https","host":"api.example.com","port":443,\
        "learned":"\(Self.date.formatted(.iso8601))","leader":"203.0.113.3","endpoints":[\
        {"ip":"203.0.113.2","ready_us":[160000,80000],"rtt_us":[80000,40000]},\
        {"ip":"203.0.113.3","ready_us":[40000,20000],"rtt_us":[20000,10000]}]}]}
        """)
    #expect(try RouteHistory(json: json.bytes(), network: "0123456789abcdef") == history)
    #expect(throws: RouteHistory.Fault(reason: "it belongs to another network")) {
      try RouteHistory(json: json.bytes(), network: "fedcba9876543210")
    }
  }

  @Test(
    "a written history conforms to the published JSON Schema",
    .enabled("\(JSONSchema.missing)") { try await JSONSchema.isInstalled() })
  func keepsToThePublishedSchema() async throws {
    for history in [experienced().history(at: now, date: Self.date), RouteHistory()] {
      let json = history.json(network: "0123456789abcdef").description
      #expect(try await JSONSchema.faults(of: json, by: "ranking") == "")
    }
  }

  @Test(
    "text that is no valid history is refused",
    arguments: [
      "", "{", "null", "[]", "{\"schema_version\":2,\"network\":\"n\",\"hosts\":[]}",
      #"{"schema_version":1,"network":"n","hosts":[{"scheme":"ftp","host":"a.b","port":443,"learned":"2026-11-21T00:00:00Z","leader":null,"endpoints":[]}]}"#,
      #"{"schema_version":1,"network":"n","hosts":[{"scheme":"https","host":"a b","port":443,"learned":"2026-11-21T00:00:00Z","leader":null,"endpoints":[]}]}"#,
      #"{"schema_version":1,"network":"n","hosts":[{"scheme":"https","host":"a.b","port":0,"learned":"2026-11-21T00:00:00Z","leader":null,"endpoints":[]}]}"#,
      #"{"schema_version":1,"network":"n","hosts":[{"scheme":"https","host":"a.b","port":443,"learned":"yesterday","leader":null,"endpoints":[]}]}"#,
      #"{"schema_version":1,"network":"n","hosts":[{"scheme":"https","host":"a.b","port":443,"learned":"2026-11-21T00:00:00Z","leader":null,"endpoints":[{"ip":"1.2.3","ready_us":null,"rtt_us":null}]}]}"#,
      #"{"schema_version":1,"network":"n","hosts":[{"scheme":"https","host":"a.b","port":443,"learned":"2026-11-21T00:00:00Z","leader":null,"endpoints":[{"ip":"1.2.3.4","ready_us":[-1,1],"rtt_us":null}]}]}"#,
      #"{"schema_version":1,"network":"n","hosts":[{"scheme":"https","host":"a.b","port":443,"learned":"2026-11-21T00:00:00Z","leader":null,"endpoints":[{"ip":"1.2.3.4","ready_us":[9223372036854775807,1],"rtt_us":null}]}]}"#,
    ])
  func invalidHistory(text: String) {
    #expect(throws: RouteHistory.Fault.self) { try RouteHistory(json: Array(text.utf8), network: "n") }
  }

  /// A run is a long sequence of combining marks. Swift compares strings with such runs slowly.
  @Test("a history in UTF-16 or UTF-32, or with a long run in a string, is refused")
  func slowHistory() {
    let json = experienced().history(at: now, date: Self.date).json(network: "n")
    #expect(throws: Never.self) { try RouteHistory(json: json.bytes(), network: "n") }
    for bytes in WideJSON.encodings(of: json.bytes()) {
      #expect(throws: RouteHistory.Fault.self) { try RouteHistory(json: bytes, network: "n") }
    }
    let run = json.description.replacing(
      "\"network\"", with: "\"\(String(repeating: "\\u0301", count: 31))\":1,\"network\"")
    let fault = #expect(throws: RouteHistory.Fault.self) {
      try RouteHistory(json: Array(run.utf8), network: "n")
    }
    #expect(fault?.reason.contains("combining marks") == true)
  }

  /// Whatever the bytes are, the reader does not trap, and it ends.
  @Test("a mutated history is read and adopted, or refused")
  func mutatedHistory() {
    let whole = experienced().history(at: now, date: Self.date).json(network: "n").bytes()
    var random = SplitMix64(seed: 7)
    for _ in 0..<2000 {
      var bytes = whole
      for _ in 0...random.below(3) {
        bytes[Int(random.below(UInt64(bytes.count)))] = UInt8(random.below(256))
      }
      if let history = try? RouteHistory(json: bytes, network: "n") {
        var planner = planner()
        _ = planner.adopt(history, at: now, date: Self.date)
        #expect(order(&planner).count == 4)
      }
    }
  }

  @Test("a history of more than 10,000 endpoints keeps the hosts that were learned last")
  func longHistory() throws {
    let endpoints = (0..<400).map {
      RouteHistory.Endpoint(IPAddress(v4: 0x0100_0000 + UInt32($0)), ready: nil, roundTrip: nil)
    }
    let hosts = (0..<50).map { number in
      RouteHistory.Host(
        Origin(.https, host: "h\(number).test"), learned: Self.date.addingTimeInterval(Double(number)),
        leader: nil,
        endpoints: endpoints)
    }
    let read = try RouteHistory(json: RouteHistory(hosts: hosts).json(network: "n").bytes(), network: "n")
    #expect(read.hosts.count == 25)
    // These hosts were learned last.
    #expect(read.hosts.allSatisfy { $0.learned >= Self.date.addingTimeInterval(25) })
  }
}
