import NetOpt
import NetOptCore
import NetOptRouting
import NetOptTestSupport
import TestTools
import Testing

/// The main behaviour of the client, tested with real servers on loopback.
@Suite struct ClientTests {
  @Test("a request goes to a listed endpoint without a DNS query")
  func listedEndpoint() async throws {
    let lab = try await Lab([.works, .works])
    defer { lab.stop() }
    let client = try await lab.client()
    let response = try await client.execute(try lab.request())
    #expect(try await response.body.collect(upTo: 100) == Array("hello\n".utf8))
    #expect(response.version == .http2)
    #expect(response.route.source == .list)
    #expect(response.route.plan.directOff == nil)
    #expect(response.route.plan.candidates.map(\.address).sorted() == lab.listed)
    #expect(lab.listed.contains(try #require(response.remote?.address)))
    let entry = try #require(try await lab.log(1).first)
    #expect(entry.serverName == Lab.host)
    #expect(entry.host == "\(Lab.host):\(lab.port)")
    #expect(lab.dns.queries().isEmpty)
    await client.shutdown()
  }

  /// The first request waits for the start-up probe. The connection of the probe is in the pool after that.
  @Test("the first request reuses the connection of a start-up probe")
  func firstRequest() async throws {
    let lab = try await Lab([.works])
    defer { lab.stop() }
    let client = try await lab.client()
    let response = try await client.execute(try lab.request())
    #expect(response.reused)
    #expect(response.route.plan.candidates.first?.score != nil)
    await client.shutdown()
  }

  @Test("a request goes to a DNS address when all listed endpoints refuse")
  func refusingEndpoints() async throws {
    let lab = try await Lab([.refuses, .refuses])
    defer { lab.stop() }
    for atStart in [true, false] {
      let client = try await lab.client { $0.probing.atStart = atStart }
      let response = try await client.execute(try lab.request())
      #expect(response.remote?.address == lab.unlisted)
      #expect(response.route.source == .dns)
      #expect(response.route.fallback == .allFailed)
      #expect(response.timings.timeToFirstByte < .milliseconds(1500))
      #expect(response.timings.dns > .zero)
      await client.shutdown()
    }
  }

  @Test("a request gets a response from a DNS address within 1.5 s when all listed endpoints are silent")
  func silentEndpoints() async throws {
    let lab = try await Lab([.behaves(.silent), .behaves(.blackHole), .behaves(.silent)])
    defer { lab.stop() }
    for atStart in [true, false] {
      let client = try await lab.client { $0.probing.atStart = atStart }
      let response = try await client.execute(try lab.request())
      #expect(response.remote?.address == lab.unlisted)
      #expect(response.route.fallback == .noAnswerInTime)
      #expect(response.timings.timeToFirstByte < .milliseconds(1500))
      await client.shutdown()
    }
  }

  /// The first request waits for the start-up probes, but never beyond its deadline.
  @Test("the deadline of the first request covers the wait for the start-up probes")
  func firstDeadline() async throws {
    let lab = try await Lab([.behaves(.silent)])
    defer { lab.stop() }
    let client = try await lab.client()
    var request = try lab.request()
    request.options.timeout = .milliseconds(30)
    let slow = request
    let start = SystemTimeSource().now()
    let error = await #expect(throws: NetOptError.self) { _ = try await client.execute(slow) }
    #expect(error?.code == .timeout)
    #expect(SystemTimeSource().now() - start < .milliseconds(80))
    await client.shutdown()
  }

  @Test("a POST is sent once although other listed endpoints are silent, refuse or close")
  func postIsSentOnce() async throws {
    let lab = try await Lab([.behaves(.silent), .refuses, .behaves(.closing), .works])
    defer { lab.stop() }
    for _ in 0..<5 {
      let client = try await lab.client { $0.probing.atStart = false }
      var request = try lab.request(.post, "/echo")
      request.body = .text("once")
      let response = try await client.execute(request)
      #expect(response.status == 200)
      #expect(response.attempts == 1)
      await client.shutdown()
    }
    #expect(try await lab.log(5).count == 5)
  }

  @Test("an endpoint with another host's certificate gets no request and is quarantined")
  func impostor() async throws {
    let lab = try await Lab([.certificate(["portal.test"]), .works])
    defer { lab.stop() }
    for atStart in [true, false] {
      let client = try await lab.client { $0.probing.atStart = atStart }
      for _ in 0..<3 {
        let response = try await client.execute(try lab.request())
        #expect(response.remote?.address == lab.listed[1])
        _ = try await response.body.collect(upTo: 100)
      }
      // `probe` returns when the probes have ended. The ranking then shows what they found.
      let ranking = try await client.probe()
      let impostor = try #require(ranking.first?.endpoints.first { $0.address == lab.listed[0] })
      #expect(impostor.state == .quarantined)
      #expect(impostor.rank == nil)
      #expect(impostor.failure?.message.contains("portal.test") == true)
      let excluded = try await client.execute(try lab.request()).route.plan.candidates
        .first { $0.address == lab.listed[0] }?.excluded
      if case .certificate(let failure, _, _) = excluded {
        #expect(failure.kind == .certificateName(presented: ["portal.test"]))
      } else {
        Issue.record("it is excluded for another reason: \(excluded?.description ?? "none")")
      }
      await client.shutdown()
    }
    #expect(try await lab.log(8).allSatisfy { $0.address == lab.listed[1] })
  }

  @Test("a redirect to another host goes to an address of that host")
  func redirectToHost() async throws {
    let lab = try await Lab([.works])
    defer { lab.stop() }
    let certificate = try await TestCertificates.certificate(for: ["other.test"])
    let address = IPAddress.freshLoopback(1)[0]
    let other = try await NginxOrigin.start([NginxOrigin.Listener(address, .certificate(certificate))])
    defer { other.stop() }
    let dns = try await DNSServer.start(["other.test": [address]])
    defer { dns.stop() }
    let client = try await lab.client { $0.dns.servers = [dns.endpoint.description] }
    let target = "/redirect?to=https://other.test:\(other.port)/echo"
    let response = try await client.execute(try lab.request(.get, target))
    #expect(response.status == 200)
    #expect(response.url.origin.host == "other.test")
    #expect(response.remote == IPEndpoint(address, port: other.port))
    #expect(response.route.plan.directOff == .noList)
    let entry = try #require(try await other.waitForLog(1).first)
    #expect(entry.serverName == "other.test")
    #expect(try await lab.log(1).map(\.target) == [target])
    await client.shutdown()
  }

  @Test("a request through a proxy does not use the list, and the proxy's password is not in the error")
  func proxy() async throws {
    let lab = try await Lab([.works])
    defer { lab.stop() }
    let proxy = try LoopbackServer(
      .raw { exchange in try exchange.respond(502, text: "no") }, on: IPAddress.freshLoopback(1)[0])
    defer { proxy.stop() }
    let client = try await lab.client { $0.proxy = .url("http://user:secret@\(proxy.endpoint)") }
    let error = await #expect(throws: NetOptError.self) { _ = try await client.execute(try lab.request()) }
    #expect(error?.route?.plan.directOff == .proxy)
    #expect(error?.description.contains("secret") == false)
    let asked = try #require(proxy.requests.first)
    #expect(asked.method == "CONNECT")
    #expect(asked.target == "\(Lab.host):\(lab.port)")
    #expect(lab.dns.queries().isEmpty)
    await client.shutdown()
  }

  @Test("the list applies to its port only, and routing by DNS bypasses the list")
  func portOfList() async throws {
    let lab = try await Lab([.works])
    defer { lab.stop() }
    let client = try await lab.client()
    let error = await #expect(throws: NetOptError.self) {
      _ = try await client.execute(try NetOptRequest(.get, "https://\(Lab.host):1/"))
    }
    #expect(error?.route?.plan.directOff == .port)
    #expect(error?.route?.listedPort == lab.port)
    #expect(
      error?.message.hasSuffix(
        "; the IP list has \(Lab.host) for port \(lab.port), so it is not used for port 1") == true)
    var request = try lab.request()
    request.options.routing = .dns
    let response = try await client.execute(request)
    #expect(response.route.plan.directOff == .requested)
    #expect(response.route.listedPort == nil)
    #expect(response.remote?.address == lab.unlisted)
    await client.shutdown()
  }
}
