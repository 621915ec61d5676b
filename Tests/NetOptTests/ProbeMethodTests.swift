import NetOpt
import NetOptCore
import NetOptRouting
import NetOptTestSupport
import Testing

@testable import NetOptEngine

/// The methods with which endpoints are probed.
@Suite struct ProbeMethodTests {
  /// Probes the host of a lab once.
  ///
  /// - Parameter health: the health check of the host in the list; `nil` for none.
  /// - Returns: the method that the probe used, and the result for each address.
  private func probe(
    _ lab: Lab, _ method: ProbeMethod, _ health: HostEntry.Health?
  ) async throws -> (method: ProbeMethod, endpoints: [IPAddress: EndpointProbe]) {
    let entry = HostEntry(port: lab.port, health: health, endpoints: lab.listed.map { ListedEndpoint($0) })
    let client = try await lab.client {
      $0.list = .list(EndpointList(hosts: [Lab.host: entry]))
      $0.probing.atStart = false
    }
    let probe = try #require(try await client.probe(method: method).first)
    await client.shutdown()
    return (probe.method, Dictionary(uniqueKeysWithValues: probe.endpoints.map { ($0.address, $0) }))
  }

  @Test("the http method sends HEAD to the health path, expects its status and checks the certificate")
  func healthPath() async throws {
    let lab = try await Lab([.works, .certificate(["portal.test"]), .refuses])
    defer { lab.stop() }
    let healthy = try await probe(lab, .http, .init(path: "/status/204", expect: 204))
    #expect(healthy.method == .http)
    let works = try #require(healthy.endpoints[lab.listed[0]])
    #expect(works.failure == nil && works.rank == 1 && works.chosen)
    #expect(works.samples.count == 3 && works.samples.allSatisfy { $0 > .zero })
    // The `http` method checks certificates too.
    #expect(healthy.endpoints[lab.listed[1]]?.state == .quarantined)
    #expect(healthy.endpoints[lab.listed[1]]?.failure?.message.contains("portal.test") == true)
    #expect(healthy.endpoints[lab.listed[2]]?.failure?.kind == .refused)
    let asked = try #require(try await lab.log(1).first)
    #expect(asked.method == "HEAD" && asked.target == "/status/204" && asked.serverName == Lab.host)
    #expect(asked.host == "\(Lab.host):\(lab.port)")
  }

  @Test("an http probe that gets another status, or none in time, fails with the request in its message")
  func unhealthyStatus() async throws {
    let lab = try await Lab([.works])
    defer { lab.stop() }
    let sick = try await probe(lab, .http, .init(path: "/status/503"))
    let endpoint = try #require(sick.endpoints[lab.listed[0]])
    #expect(endpoint.failure?.kind == .unhealthy)
    #expect(endpoint.failure?.message == "HEAD /status/503 was answered with 503, not with 200")
    let slow = try await probe(lab, .http, .init(path: "/slow?s=30"))
    #expect(slow.endpoints[lab.listed[0]]?.failure?.kind == .unhealthy)
    #expect(slow.endpoints[lab.listed[0]]?.failure?.message.hasPrefix("HEAD /slow?s=30: ") == true)
  }

  @Test("a probe without a method uses the configured method, and names it")
  func configuredMethod() async throws {
    let lab = try await Lab([.works])
    defer { lab.stop() }
    for method in [ProbeMethod.tcp, .http] {
      let client = try await lab.client {
        $0.probing.atStart = false
        $0.probing.method = method
      }
      #expect(try await client.probe().map(\.method) == [method])
      await client.shutdown()
    }
    let requests = try await lab.log(1)
    #expect(requests.allSatisfy { $0.method == "HEAD" })
  }

  @Test("the http method without a health path requests the root")
  func defaultHealthPath() async throws {
    let lab = try await Lab([.works])
    defer { lab.stop() }
    #expect(try await probe(lab, .http, nil).endpoints[lab.listed[0]]?.failure == nil)
    #expect(try await lab.log(1).map(\.target) == ["/"])
  }

  /// Whether this process may open a socket for ICMP echo requests.
  private static var mayPing: Bool {
    guard let socket = try? EchoSocket(to: .loopback) else { return false }
    socket.close()
    return true
  }

  @Test(
    "the icmp method measures also an endpoint that refuses TCP, without a failure",
    .enabled("this process may not send ICMP: run as root, or see net.ipv4.ping_group_range") { mayPing })
  func icmp() async throws {
    // The second address refuses TCP connections, but replies to echo requests.
    let lab = try await Lab([.works, .refuses])
    defer { lab.stop() }
    let found = try await probe(lab, .icmp, nil)
    #expect(found.method == .icmp)
    for address in lab.listed {
      let endpoint = try #require(found.endpoints[address])
      #expect(endpoint.samples.count == 3 && endpoint.rtt ?? .zero > .zero)
      #expect(endpoint.failure == nil && endpoint.state == .closed)
    }
    #expect(try lab.origin.accessLog().isEmpty)
  }
}
