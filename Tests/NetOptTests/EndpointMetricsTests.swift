import NetOptCore
import NetOptRouting
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOpt

/// What a client counts for each endpoint of the list.
@Suite struct EndpointMetricsTests {
  /// What may happen at an endpoint, and the name of a failure to connect.
  private static let outcomes: [(outcome: StubOutcome, name: String)] = [
    (.respond(200), ""), (.respond(200), ""), (.respond(200), ""), (.respond(404), ""), (.respond(404), ""),
    (.respond(502), ""), (.respond(503), ""), (.respond(504), ""), (.refuse, "refused"),
    (.reset, "reset"), (.brokenTLS, "tls-failed"), (.expired, "certificate-expired"),
    (.untrusted, "certificate-untrusted"), (.unreachable, "unreachable"),
    (.resetAfterSend, ""),
  ]

  /// Which endpoints met with something comes from the reports of the calls.
  @Test("each response and each failure counts at its own endpoint, whatever the scheme", arguments: 1...5)
  func counts(seed: UInt64) async throws {
    var random = SplitMix64(seed: seed)
    let lab = try StubLab(Array(repeating: .respond(200), count: 4)) { $0.probing.inBackground = false }
    var names = Dictionary(uniqueKeysWithValues: lab.addresses.map { ($0, "") })
    var expected: [IPAddress: (responses: Int, failures: [String: Int])] = [:]
    var shown = 0
    for round in 0..<300 {
      let (outcome, name) = random.element(of: Self.outcomes)
      let changed = random.element(of: lab.addresses)
      lab.transport.set(outcome, for: changed)
      names[changed] = name
      let scheme = random.isOne(in: 4) ? "http" : "https"
      // A second attempt would have a report of its own.
      var request = try NetOptRequest(.get, "\(scheme)://\(StubLab.host):443/")
      request.options.maxAttempts = 1
      if random.isOne(in: 2) { request.options.connection = .fresh }
      var route: RouteReport?
      // What the winner of the race met with; `nil` for a response that is no failure.
      var failure: String?
      do throws(NetOptError) {
        let response = try await lab.client.execute(request)
        route = response.route
        if [502, 503, 504].contains(response.status) { failure = String(response.status) }
        _ = try await response.body.collect(upTo: 100)
      } catch {
        (route, failure) = (error.route, "incomplete-response")
      }
      for leg in try #require(route).legs {
        guard let address = leg.address, let name = names[address] else { continue }
        var counts = expected[address] ?? (0, [:])
        switch leg.outcome {
        case .won:
          if let failure { counts.failures[failure, default: 0] += 1 } else { counts.responses += 1 }
        case .failed: counts.failures[name, default: 0] += 1
        case .cancelled:
          // A connection that is not ready when its time is over, although a later one is, has failed.
          let stagger = route?.plan.legs.first { $0.target == .address(address) }?.stagger ?? .defaultStagger
          guard let winner = route?.winner, leg.started < winner.started, leg.ended - leg.started >= stagger
          else { continue }
          counts.failures[leg.connected == nil ? "connect-timeout" : "tls-timeout", default: 0] += 1
        case .lost: continue
        }
        expected[address] = counts
      }
      if round % 10 == 0 {
        let endpoints = try #require(lab.client.status().hosts.first).endpoints
        let now = endpoints.reduce(0) { $0 + $1.counts.responses + $1.counts.failures.values.reduce(0, +) }
        #expect(now >= shown)
        shown = now
      }
      if random.isOne(in: 50) { lab.client.router.withPlanner { $0.networkChanged(at: $1) } }
    }
    let status = try #require(lab.client.status().hosts.first)
    let metrics = lab.client.metrics.prometheusText
    await lab.client.shutdown()
    #expect(expected.values.reduce(0) { $0 + $1.responses } > 20)
    #expect(Set(expected.values.flatMap(\.failures.keys)).count > 5)
    for endpoint in status.endpoints {
      let (responses, failures) = expected[endpoint.address] ?? (0, [:])
      #expect(endpoint.counts.responses == responses && endpoint.counts.failures == failures)
      let labels =
        "server_address=\"\(StubLab.host)\",server_port=\"443\",network_peer_address=\"\(endpoint.address)\""
      #expect(metrics.contains("netopt_client_endpoint_wait_seconds_count{\(labels)} \(responses)\n"))
      for (name, count) in failures {
        #expect(
          metrics.contains(
            "netopt_client_endpoint_failures_total{\(labels),error_type=\"\(name)\"} \(count)\n"))
      }
    }
  }

  @Test("the wait of a response is its time to the first byte, and a new list keeps the counts")
  func waits() async throws {
    let lab = try StubLab([.respond(200).taking(answer: .milliseconds(20))])
    var waits: Int64 = 0
    for _ in 0..<3 {
      let response = try await lab.client.execute(try lab.request())
      waits += response.timings.waitNanoseconds
      _ = try await response.body.collect(upTo: 100)
    }
    let list = try #require(lab.client.list)
    lab.client.router.withPlanner { $0.adopt(list, at: $1) }
    let counts = try #require(lab.client.status().hosts.first?.endpoints.first).counts
    await lab.client.shutdown()
    #expect(waits >= 60_000_000)
    #expect(counts.responses == 3 && counts.waits == waits && counts.failures.isEmpty)
  }

  /// The list names no scheme, and a port other than 80 may serve either.
  @Test("the status shows the endpoints of the scheme that requests use", arguments: ["http", "https"])
  func scheme(_ scheme: String) async throws {
    for port: UInt16 in [80, 8080] {
      let lab = try StubLab([.refuse, .respond(200)]) {
        guard case .list(let list) = $0.list, let entry = list.hosts[StubLab.host] else { return }
        $0.list = .list(
          EndpointList(hosts: [StubLab.host: HostEntry(port: port, endpoints: entry.endpoints)]))
      }
      let before = try #require(lab.client.status().hosts.first)
      #expect(before.endpoints.allSatisfy { $0.lastFailure == nil })
      let request = try NetOptRequest(.get, "\(scheme)://\(StubLab.host):\(port)/")
      _ = try await lab.client.execute(request).body.collect(upTo: 100)
      let host = try #require(lab.client.status().hosts.first)
      await lab.client.shutdown()
      #expect(
        host.endpoints.first?.address == lab.addresses[1] && host.endpoints.first?.counts.responses == 1)
      #expect(host.endpoints.last?.lastFailure?.kind == .refused)
    }
  }
}
